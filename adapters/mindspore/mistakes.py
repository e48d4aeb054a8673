"""torch's errors about shapes, axes and dtypes, as the classes that MindSpore raises (source: MindSpore 2.10.0)."""

from __future__ import annotations

import functools
import re
from typing import Any, NoReturn, cast

__all__ = ["raise_as_mindspore"]

_SHAPES = re.compile(
    "imension out of range|must match the size|must match except|to be equal size|cannot be multiplied|size mismatch"
    "|is invalid for input of size|batch1 must be|match the broadcast|more than one value is ambiguous"
    "|number of dimensions|at least 2 dimensions|expanded size"
)
_DTYPES = re.compile("not implemented for|only support floating point|did not match|is not supported")


def raise_as_mindspore(error: IndexError | RuntimeError) -> NoReturn:
    """Raise an error of torch: as a ValueError too if it is about shapes, as a TypeError too if about dtypes."""
    text = str(error)
    theirs = ValueError if _SHAPES.search(text) else TypeError if _DTYPES.search(text) else None
    if theirs is None or isinstance(error, theirs):
        raise error
    raise _both(cast(Any, type(error)), theirs)(text) from error


@functools.cache
def _both(first: type[Exception], second: type[Exception]) -> type[Exception]:
    return type(f"{second.__name__}As{first.__name__}", (second, first), {"__module__": __name__})
