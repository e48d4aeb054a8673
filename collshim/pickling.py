"""Objects as bytes: what ``options(objects=...)`` lets a receiver restore.

pickle runs what the sender chose. "safe" restores numbers, text, containers, tensors and NumPy arrays alone.
"""

from __future__ import annotations

import importlib
import io
import pickle
from typing import Any

import torch

_PLAIN = {
    "builtins": ("bytearray", "complex", "frozenset", "range", "set", "slice"),
    "collections": ("Counter", "OrderedDict", "deque"),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "numpy": ("dtype", "ndarray"),
    "numpy.dtypes": (),
    "torch": ("Size", "device"),
    "torch._utils": ("_rebuild_parameter", "_rebuild_tensor_v2"),
    "torch.nn.parameter": ("Parameter",),
    "uuid": ("UUID",),
}
"""Classes and functions that make nothing but values."""

_OF_NUMPY = ("_reconstruct", "scalar", "_frombuffer")
_NUMPY_MODULES = ("numpy._core.multiarray", "numpy.core.multiarray", "numpy._core.numeric", "numpy.core.numeric")


def restored(data: Any, *, safely: bool) -> Any:
    """The object that was pickled.

    Raises:
        UnpicklingError: ``safely``, and it is, or has in it, something else than the values named above.
        Exception: whatever the classes of the object raise.
    """
    return _SafeUnpickler(io.BytesIO(data)).load() if safely else pickle.loads(data)


class _SafeUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch.storage", "_load_from_bytes"):
            return _storage
        if module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        if name in _PLAIN.get(module, ()) or (module in _NUMPY_MODULES and name in _OF_NUMPY):
            return getattr(importlib.import_module(module), name)
        raise pickle.UnpicklingError(
            f"{module}.{name} makes no number, text, container, tensor or array, and options(objects='safe') restores "
            "nothing else"
        )


def _storage(data: bytes) -> Any:
    return torch.load(io.BytesIO(data), weights_only=True)
