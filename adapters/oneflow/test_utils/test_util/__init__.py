"""``oneflow.test_utils.test_util``: combinations of a test's arguments, and names of dtypes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch

from collshim.adapting.absent import saying
from collshim.errors import ArgumentError, also

_NAMES = ("float16", "float32", "int8", "int32", "int64", "uint8")

type_name_to_flow_type = {name: getattr(torch, name) for name in _NAMES} | {"double": torch.float64}
type_name_to_np_type = {name: getattr(np, name) for name in _NAMES} | {"double": np.float64}


def GenCartesianProduct(sets: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """Return every combination of one entry from each set; without "cuda" if ONEFLOW_TEST_CPU_ONLY is set."""
    entries = [list(one) for one in sets]
    if os.environ.get("ONEFLOW_TEST_CPU_ONLY"):
        entries = [[entry for entry in one if not (isinstance(entry, str) and entry == "cuda")] for one in entries]
    return itertools.product(*entries)


def GenArgList(arg_dict: dict[str, list[Any]]) -> Iterator[tuple[Any, ...]]:
    """Return every combination of the arguments' values, in the arguments' order.

    Raises:
        AssertionError: the values of an argument are not a list.
    """
    wrong = [name for name, values in arg_dict.items() if not isinstance(values, list)]
    if wrong:
        raise also(ArgumentError, AssertionError)(f"the values of {', '.join(wrong)} are not a list, should be one")
    return GenCartesianProduct(arg_dict.values())


def GenArgDict(arg_dict: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Return the combinations of ``GenArgList`` as dictionaries, by the arguments' names."""
    return [dict(zip(arg_dict, values, strict=True)) for values in GenArgList(arg_dict)]


__getattr__ = saying(__name__)
