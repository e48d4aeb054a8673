"""torch's errors, as the classes that MindSpore raises (source: MindSpore 2.10.0)."""

from __future__ import annotations

import functools
import re
from typing import Any, NoReturn, cast

import numpy as np
import torch

from collshim.adapting.refusing import refuse

__all__ = ["from_python", "raise_as_mindspore"]

_SHAPES = re.compile(
    "imension out of range|must match the size|must match except|to be equal size|cannot be multiplied|size mismatch"
    "|is invalid for input of size|batch1 must be|match the broadcast|more than one value is ambiguous"
    "|running_mean should contain|number of dimensions|at least 2 dimensions|expanded size"
)
_CLASSES = re.compile(r"Target -?\d+ is out of bounds")
_DTYPES = re.compile("not implemented for|only support floating point|did not match|is not supported")


def raise_as_mindspore(error: IndexError | RuntimeError) -> NoReturn:
    """Raise an error of torch: as a ValueError too if it is about shapes, as a TypeError too if about dtypes.

    An IndexError about classes in labels becomes a RuntimeError too.
    """
    text = str(error)
    pairs = ((_SHAPES, ValueError), (_DTYPES, TypeError), (_CLASSES, RuntimeError))
    theirs = next((kind for pattern, kind in pairs if pattern.search(text)), None)
    if theirs is None or isinstance(error, theirs):
        raise error
    raise _both(cast(Any, type(error)), theirs)(text) from error


def from_python(data: Any, dtype: torch.dtype | None) -> torch.Tensor:
    """Return a number, or a list of numbers, as a tensor; complex numbers become complex128.

    Raises:
        TypeError: ``data`` is anything else.
    """
    if not isinstance(data, bool | int | float | complex | list | tuple | np.generic):
        text = f"should be a number, a list, an array or a tensor, but got type '{type(data).__name__}'"
        refuse(TypeError, f"For 'Tensor', the type of 'input_data' {text}.")
    try:
        made = torch.tensor(data, dtype=dtype)
    except (RuntimeError, TypeError, ValueError):
        if _only_numbers(data):
            raise
        refuse(TypeError, f"For Tensor, the input_data is {data} that contain unsupported element.")
    return torch.tensor(data, dtype=torch.complex128) if dtype is None and made.is_complex() else made


def _only_numbers(data: Any) -> bool:
    if isinstance(data, list | tuple):
        return all(map(_only_numbers, data))
    return isinstance(data, bool | int | float | complex | np.generic)


@functools.cache
def _both(first: type[Exception], second: type[Exception]) -> type[Exception]:
    return type(f"{second.__name__}As{first.__name__}", (second, first), {"__module__": __name__})
