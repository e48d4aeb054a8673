"""``Cell.to_float``: a Cell computes in a dtype, while its parameters keep theirs (source: MindSpore 2.10.0)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

__all__ = ["computing_in"]

_NOW = threading.local()
"""The dtype in which this thread's innermost Cell with one computes."""

_AS_THEY_ARE = frozenset(
    {"__get__", "__set__", "batch_norm", "clone", "detach", "double", "float", "half", "to", "type"}
)
"""Functions whose arguments are not converted, in addition to functions that write into a tensor."""


@contextmanager
def computing_in(dtype: torch.dtype) -> Iterator[None]:
    """Convert the floating-point arguments of torch's functions to this dtype; an inner Cell may use another one."""
    outer = getattr(_NOW, "dtype", None)
    _NOW.dtype = dtype
    try:
        if outer is None:
            with _Conversion():
                yield
        else:
            yield
    finally:
        _NOW.dtype = outer


class _Conversion(TorchFunctionMode):
    """Converts the arguments of torch's functions."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in _AS_THEY_ARE or (name.endswith("_") and not name.endswith("__")):
            return func(*args, **(kwargs or {}))
        return func(*map(_converted, args), **{key: _converted(value) for key, value in (kwargs or {}).items()})


def _converted(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_converted, value)) if not hasattr(value, "_fields") else value
    if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype is not _NOW.dtype:
        return value.to(_NOW.dtype)
    return value
