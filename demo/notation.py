"""The notation of results: for people, and for comparison with the expected results."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from torch import Tensor

from collshim.tensorflow.distribute import DistributedValues


def copied(value: Any) -> Any:
    """Copy a value, so that later changes in place do not affect it."""
    return copy.deepcopy(value)


def structure(value: Any) -> str:
    """Return the structure of a value: ``(tensor, None)``, ``[t, t]``, ``PerReplica{0: t, 1: t}``."""
    text = _structure(value)
    return text.replace("tensor", "t") if text.count("tensor") > 1 else text


def _structure(value: Any) -> str:
    if isinstance(value, Tensor):
        return "tensor"
    if isinstance(value, tuple):
        return f"({', '.join(map(_structure, value))})"
    if isinstance(value, list):
        return f"[{', '.join(map(_structure, value))}]"
    if isinstance(value, DistributedValues):
        return f"{type(value).__name__}{_fields(dict(enumerate(value.values)))}"
    if isinstance(value, dict):
        return _fields(value)
    return "None" if value is None else type(value).__name__


def _fields(values: dict[Any, Any]) -> str:
    return f"{{{', '.join(f'{key}: {_structure(item)}' for key, item in values.items())}}}"


def short(value: Any) -> str:
    """Return only the values: ``[[1 2] [3 4]]`` is one tensor, ``[1 2] [3 4]`` a list of two, ``a: [1]`` a dict."""
    if isinstance(value, dict):
        return "  ".join(f"{key}: {short(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return " ".join(map(short, value))
    return _numbers(value.tolist()) if isinstance(value, Tensor) else str(value)


def _numbers(value: Any) -> str:
    if isinstance(value, list):
        return f"[{' '.join(map(_numbers, value))}]"
    if isinstance(value, complex):
        return f"{value.real:g}{value.imag:+g}j"
    return f"{value:g}." if isinstance(value, float) and value.is_integer() else str(value)


def plain(value: Any) -> Any:
    """Return the values as JSON types: nested lists, objects, null; complex numbers as text."""
    if isinstance(value, Tensor):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return _numbers(value) if isinstance(value, complex) else value


def dtype(value: Any) -> str:
    """Return the dtype of all tensors in a value, ``"int64"``; several are joined by ``, ``, and none gives ``""``."""
    return ", ".join(sorted({str(tensor.dtype).removeprefix("torch.") for tensor in _tensors(value)}))


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors(item)
