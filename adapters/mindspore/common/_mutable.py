"""``mindspore.mutable`` and small related functions (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any, TypeVar

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore.common.seed import set_seed
from collshim.mindspore.tensor import Tensor, wrap

__all__ = ["from_numpy", "is_tensor", "manual_seed", "mutable"]
V = TypeVar("V")


def mutable(input_data: V, dynamic_len: bool = False) -> V:
    """Return the value itself: nothing is compiled, so no value is constant.

    Raises:
        TypeError: if the value is not a number, a list, a tuple, a dict or a tensor.
    """
    if not isinstance(input_data, bool | int | float | list | tuple | dict | Tensor):
        text = "the 'input_data' should be one of (int, float, list, tuple, dict, Tensor), but got "
        refuse(TypeError, f"For 'mutable', {text}{type(input_data)}")
    return input_data


def is_tensor(obj: Any) -> bool:
    """Return whether this is a tensor."""
    return isinstance(obj, Tensor)


def from_numpy(array: Any) -> Tensor:
    """Return an array's values as a tensor, in the same memory."""
    made: Tensor = wrap(torch.from_numpy(array))
    return made


def manual_seed(seed: int) -> None:
    """Seed this rank's random numbers, as ``set_seed`` does."""
    set_seed(seed)
