"""``torch.distributed.nn.functional``: differentiable collectives that return their result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from collshim.conformance.bindings.admits import FLOATS
from collshim.conformance.bindings.answers import Shaped, Tree
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.spelling import Spelling
from collshim.conformance.spellings.torch.common import EXCHANGE, OPS, PARTS, spelled

_ANY = replace(PARTS, dtypes=(*FLOATS, "bfloat16"), gradient=True)
_AVERAGES = replace(_ANY, reduce_ops=tuple(OPS))


def _spelled(collective: str, takes: Mapping[str, str], name: str = "", **more: Any) -> Spelling:
    return spelled(f"nn.functional.{name or collective}", collective, takes, **{"admits": _ANY} | more)


def _without_meaning(case: Any) -> Tree:
    return Shaped(case.shape, case.dtype)


def _zeros(case: Any) -> Tree:
    return [np.zeros_like(array) for array in case.arrays()]


FUNCTIONAL: tuple[Binding, ...] = (
    _spelled("all_gather", {"tensor": "array"}, wrap=tuple),
    _spelled(
        "all_reduce",
        {"tensor": "array", "op": "ReduceOp"},
        admits=replace(_AVERAGES, layouts=("contiguous", "transposed", "strided")),
    ),
    _spelled(
        "all_to_all",
        {"output_tensor_list": "list of buffers", "input_tensor_list": "list of parts"},
        wrap=tuple,
        admits=replace(EXCHANGE, gradient=True),
    ),
    _spelled(
        "all_to_all",
        {
            "output": "buffer",
            "input": "array of whole",
            "output_split_sizes": "optional rows from each",
            "input_split_sizes": "optional rows to each",
        },
        "all_to_all_single",
        arrangement="joined",
        admits=replace(_ANY, least_ndim=1, ragged=True),
    ),
    _spelled("broadcast", {"tensor": "array", "src": "root"}, elsewhere="zeros"),
    _spelled("gather", {"tensor": "array", "dst": "root"}, wrap=tuple, off_root=_zeros),
    _spelled("scatter", {"tensors": "list of parts@root", "src": "root"}, elsewhere="zeros"),
    _spelled(
        "reduce",
        {"tensor": "array", "dst": "root", "op": "ReduceOp"},
        admits=_AVERAGES,
        off_root=_without_meaning,
    ),
    _spelled(
        "reduce_scatter",
        {"output": "buffer", "input_list": "list of parts", "op": "ReduceOp"},
        admits=_AVERAGES,
    ),
)
