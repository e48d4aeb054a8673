"""Functions that MindSpore and torch share, adapted to take and return MindSpore's tensors."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from collshim.mindspore.tensor import settle, wrap

_NAMES = {"axis": "dim", "keepdims": "keepdim", "keep_dims": "keepdim"}
"""Names of optional arguments that torch spells differently."""


def of_torch(module: str, source: Any, names: str) -> dict[str, Callable[..., Any]]:
    """Return the functions of ``source``, a torch module, with these names; ``names`` separates them by spaces."""
    return {name: _adopt(module, name, getattr(source, name)) for name in names.split()}


def with_signatures(module: str, signatures: str, functions: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
    """Return functions with MindSpore's parameters: a line ``name parameter ... parameter=default * ...`` for each.

    A function receives parameters without a default by position, and others, if they were passed, by torch's names.
    """
    lines = [line.split() for line in signatures.strip().splitlines()]
    return {name: _bound(module, name, functions[name], parameters) for name, *parameters in lines}


def numbers(of: Callable[..., Any]) -> Callable[..., Any]:
    """Return a torch function whose first argument must be a tensor, adapted to take numbers in both places."""

    def call(input: Any, other: Any, **more: Any) -> Any:
        tensors = [each for each in (input, other) if isinstance(each, torch.Tensor)]
        like = tensors[0].dtype if tensors and tensors[0].is_floating_point() else None
        pair = [
            torch.tensor(each, dtype=like if isinstance(each, float) else None)
            if isinstance(each, bool | int | float)
            else each
            for each in (input, other)
        ]
        return of(*pair, **more)

    call.__name__ = getattr(of, "__name__", "call")
    return call


def _bound(module: str, name: str, function: Callable[..., Any], texts: list[str]) -> Callable[..., Any]:
    apart = texts.index("*") if "*" in texts else len(texts)
    parameters = [_parameter(text, place > apart) for place, text in enumerate(texts) if place != apart]
    signature = inspect.Signature(parameters)
    required = [each.name for each in parameters if each.default is inspect.Parameter.empty]

    def bound(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        first = [given.pop(each) for each in required]
        return function(*first, **{_NAMES.get(key, key): value for key, value in given.items()})

    call: Any = _adopt(module, name, bound)
    call.__doc__ = f"Return what torch's function ``{getattr(function, '__name__', name)}`` returns."
    call.__signature__ = signature
    return call  # type: ignore[no-any-return]


def _parameter(text: str, by_keyword: bool) -> inspect.Parameter:
    name, equals, default = text.partition("=")
    kind = inspect.Parameter.KEYWORD_ONLY if by_keyword else inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=ast.literal_eval(default) if equals else inspect.Parameter.empty)


def _adopt(module: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()):
            for each in value if isinstance(value, list | tuple) else (value,):
                settle(each)
        return wrap(function(*args, **kwargs))

    call.__name__ = call.__qualname__ = name
    call.__module__ = module
    call.__doc__ = f"Return what torch's function ``{getattr(function, '__name__', name)}`` returns."
    return call
