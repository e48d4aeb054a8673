"""Functions that MindSpore and torch share, adapted to take and return MindSpore's tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from collshim.mindspore.tensor import settle, wrap

_NAMES = {"axis": "dim", "keepdims": "keepdim", "keep_dims": "keepdim", "input_x": "input", "x": "input"}
"""Argument names that torch spells differently."""


def of_torch(module: str, source: Any, names: str) -> dict[str, Callable[..., Any]]:
    """Return the functions of ``source``, a torch module, with these names; ``names`` separates them by spaces."""
    return {name: _adopt(module, name, getattr(source, name), {}) for name in names.split()}


def renamed(module: str, functions: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Return torch functions under other names, with MindSpore's argument names."""
    return {name: _adopt(module, name, function, _NAMES) for name, function in functions.items()}


def _adopt(module: str, name: str, function: Callable[..., Any], names: Mapping[str, str]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()):
            for each in value if isinstance(value, list | tuple) else (value,):
                settle(each)
        return wrap(function(*args, **{names.get(key, key): value for key, value in kwargs.items()}))

    call.__name__ = call.__qualname__ = name
    call.__module__ = module
    call.__doc__ = f"Return what torch's function ``{getattr(function, '__name__', name)}`` returns."
    return call
