"""``Elemwise`` (source: MegEngine 1.13.0, ``megengine.module.elemwise``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from collshim.errors import ArgumentValueError
from collshim.megengine.functional import _layers, elemwise
from collshim.megengine.module.module import Module

_OTHERS: dict[str, Callable[..., Any]] = {
    "RELU": _layers.relu,
    "SIGMOID": _layers.sigmoid,
    "H_SWISH": _layers.hswish,
    "SILU": _layers.silu,
    "GELU": _layers.gelu,
    "NEGATE": elemwise.neg,
    "MAX": elemwise.maximum,
    "MIN": elemwise.minimum,
    "TRUE_DIV": elemwise.div,
    "FUSE_ADD_RELU": lambda x, y: _layers.relu(x + y),
    "FUSE_ADD_SIGMOID": lambda x, y: _layers.sigmoid(x + y),
    "FUSE_ADD_TANH": lambda x, y: elemwise.tanh(x + y),
    "FUSE_ADD_H_SWISH": lambda x, y: _layers.hswish(x + y),
    "FUSE_MUL_ADD3": lambda x, y, z: x * y + z,
    "FUSE_MUL_ADD4": lambda x, y, z, w: x * y + z * w,
}


class Elemwise(Module):
    """An elementwise operation, chosen by its name in upper case: ``"ADD"``, ``"FUSE_ADD_RELU"``, ...

    Raises:
        ValueError: there is no operation of this name here.
    """

    def __init__(self, method: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.method = method
        found = _OTHERS.get(method.upper()) or getattr(elemwise, method.lower(), None)
        if found is None or (method.upper() not in _OTHERS and method.lower() not in elemwise.__all__):
            raise ArgumentValueError(f"Elemwise: method is {method!r}, should be one of functional.elemwise's names")
        self._operation = found

    def forward(self, *inps: Any) -> Any:
        """Apply the operation."""
        return self._operation(*inps)
