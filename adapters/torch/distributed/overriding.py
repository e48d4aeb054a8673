"""``__torch_function__``: a class of tensors may take over the calls that are made with its tensors."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from torch.overrides import handle_torch_function, has_torch_function

P = ParamSpec("P")
R = TypeVar("R")


def overridable(asked: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function whose argument ``asked``, a tensor or a list of them, may take the call over, as torch 2.13 has it."""

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        place = list(inspect.signature(function).parameters).index(asked)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            given = args[place] if place < len(args) else kwargs.get(asked)
            tensors = tuple(given) if isinstance(given, list | tuple) else (given,)
            if not has_torch_function(tensors) or any(isinstance(one, type) for one in tensors):
                return function(*args, **kwargs)
            taken: R = handle_torch_function(call, tensors, *args, **kwargs)
            return taken

        return call

    return wrap
