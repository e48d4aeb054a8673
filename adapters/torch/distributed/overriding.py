"""``__torch_function__``: a tensor class may override the calls that have its tensors as arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function

P = ParamSpec("P")
R = TypeVar("R")


def overridable(parameter: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function whose ``parameter``, one tensor or a list, may override the call, as in torch 2.13."""

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        place = list(inspect.signature(function).parameters).index(parameter)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if len(args) > place and type(args[place]) is Tensor:
                return function(*args, **kwargs)
            argument = args[place] if place < len(args) else kwargs.get(parameter)
            tensors = tuple(argument) if isinstance(argument, list | tuple) else (argument,)
            if not has_torch_function(tensors) or any(isinstance(tensor, type) for tensor in tensors):
                return function(*args, **kwargs)
            result: R = handle_torch_function(call, tensors, *args, **kwargs)
            return result

        return call

    return wrap
