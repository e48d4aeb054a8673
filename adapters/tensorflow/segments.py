"""``tf.math.segment_sum`` and so on: reductions of the rows of each segment. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from collshim.tensorflow.arithmetic import tensor
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.function_names import name_functions
from collshim.tensorflow.tensor import Tensor, adopt


def _combined(reduce: str, data: torch.Tensor, ids: torch.Tensor, count: int) -> torch.Tensor:
    if data.shape[: ids.dim()] != ids.shape:
        raise invalid_argument(
            f"data.shape = {list(data.shape)} does not start with segment_ids.shape = {list(ids.shape)}"
        )
    rows, places = data.reshape(ids.numel(), *data.shape[ids.dim() :]), ids.reshape(-1).long()
    kept = places >= 0
    rows, places = rows[kept], places[kept]
    if bool((places >= count).any()):
        raise invalid_argument(f"segment_ids{list(ids.shape)} = {int(places.max())} is out of range [0, {count})")
    whole = torch.full((count, *rows.shape[1:]), _start(reduce, data.dtype), dtype=data.dtype)
    if not len(rows):
        return whole
    spread = places.reshape(-1, *[1] * (rows.dim() - 1)).expand_as(rows)
    return whole.scatter_reduce(0, spread, rows, reduce, include_self=reduce != "mean")


def _start(reduce: str, dtype: torch.dtype) -> Any:
    """Return the result for an empty segment."""
    limits = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    return {"sum": 0, "mean": 0, "prod": 1, "amax": limits.min, "amin": limits.max}[reduce]


def _unsorted(reduce: str) -> Callable[..., Tensor]:
    def combine(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
        rows = tensor(data)
        if reduce == "mean" and rows.dtype in (torch.int32, torch.int64):
            rows = rows.double()  # as TensorFlow divides
        return adopt(_combined(reduce, rows, tensor(segment_ids), int(num_segments)))

    combine.__doc__ = f"Return the ``{reduce}`` of each segment's rows; negative ids are left out."
    return combine


def _sorted(reduce: str) -> Callable[..., Tensor]:
    def combine(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
        ids = tensor(segment_ids)
        if ids.dim() != 1:
            raise invalid_argument(f"segment_ids should be a vector, has shape {list(ids.shape)}")
        if bool((ids[1:] < ids[:-1]).any()) or bool((ids < 0).any()):
            raise invalid_argument("segment ids are not increasing")
        count = int(ids[-1]) + 1 if len(ids) else 0
        found = _combined(reduce, tensor(data), ids, count)
        empty = ~torch.isin(torch.arange(count), ids.long())
        return adopt(torch.where(empty.reshape(-1, *[1] * (found.dim() - 1)), 1 if reduce == "prod" else 0, found))

    combine.__doc__ = f"Return the ``{reduce}`` of each segment's rows; the ids must increase."
    return combine


unsorted_segment_sum, unsorted_segment_mean = _unsorted("sum"), _unsorted("mean")
unsorted_segment_max, unsorted_segment_min = _unsorted("amax"), _unsorted("amin")
unsorted_segment_prod = _unsorted("prod")
segment_sum, segment_mean = _sorted("sum"), _sorted("mean")
segment_max, segment_min, segment_prod = _sorted("amax"), _sorted("amin"), _sorted("prod")


name_functions(globals())
