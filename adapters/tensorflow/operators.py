"""The operators of tensors, for objects whose value is a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _operator(name: str) -> Callable[..., Any]:
    def compute(self: Any, *others: Any) -> Any:
        values = [other._as_tensor() if hasattr(other, "_as_tensor") else other for other in others]
        return getattr(self._as_tensor(), name)(*values)

    compute.__name__, compute.__doc__ = name, f"The tensor's ``{name}``."
    return compute


class Operators:
    """Operators that compute with the result of ``_as_tensor()``."""

    __add__ = _operator("__add__")
    __radd__ = _operator("__radd__")
    __sub__ = _operator("__sub__")
    __rsub__ = _operator("__rsub__")
    __mul__ = _operator("__mul__")
    __rmul__ = _operator("__rmul__")
    __truediv__ = _operator("__truediv__")
    __rtruediv__ = _operator("__rtruediv__")
    __floordiv__ = _operator("__floordiv__")
    __rfloordiv__ = _operator("__rfloordiv__")
    __mod__ = _operator("__mod__")
    __rmod__ = _operator("__rmod__")
    __pow__ = _operator("__pow__")
    __rpow__ = _operator("__rpow__")
    __matmul__ = _operator("__matmul__")
    __rmatmul__ = _operator("__rmatmul__")
    __and__ = _operator("__and__")
    __rand__ = _operator("__rand__")
    __or__ = _operator("__or__")
    __ror__ = _operator("__ror__")
    __xor__ = _operator("__xor__")
    __rxor__ = _operator("__rxor__")
    __invert__ = _operator("__invert__")
    __neg__ = _operator("__neg__")
    __abs__ = _operator("__abs__")
    __lt__ = _operator("__lt__")
    __le__ = _operator("__le__")
    __gt__ = _operator("__gt__")
    __ge__ = _operator("__ge__")
    __getitem__ = _operator("__getitem__")
    __eq__ = _operator("__eq__")
    __ne__ = _operator("__ne__")

    __array_priority__ = 100  # NumPy's operators defer to these

    def __hash__(self) -> int:
        raise TypeError(f"Variable is unhashable. Instead, use variable.ref() as the key. (Variable: {self!r})")

    def _as_tensor(self) -> Any:
        """Return the value."""
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._as_tensor().__array__(dtype)

    def __bool__(self) -> bool:
        return bool(self._as_tensor())

    def __int__(self) -> int:
        return int(self._as_tensor())

    def __float__(self) -> float:
        return float(self._as_tensor())

    def __iter__(self) -> Any:
        return iter(self._as_tensor())
