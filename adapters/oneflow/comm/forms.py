"""all_gather_into_tensor and reduce_scatter_tensor take any shape with the right number of elements."""

from __future__ import annotations

from torch import Tensor

from collshim.arrays import Array
from collshim.oneflow.comm.arguments import everybody, refused, require_attribute, storage, values

_SIZE = "output tensor size must be equal to world_size times input tensor size"
_TYPE = "output tensor must have the same type as input tensor"


def require_rows(collective: str, output: Array, source: Array, *, shares: bool) -> tuple[Tensor, Tensor]:
    """``output`` to write into and ``source`` to read from, when element counts and dtypes fit.

    ``shares``: the output is one rank's share of the input; else the input is one rank's share of the output.
    """
    for what, value in (("output_tensor", output), ("input_tensor", source)):
        require_attribute(collective, what, value, "is_local")
    target, read = storage(collective, "output_tensor", output), values(collective, "input_tensor", source)
    _require_counts(collective, target, read, shares=shares)
    if target.dtype != read.dtype:
        raise refused(RuntimeError, collective, "dtype of output_tensor", target.dtype, f"{read.dtype}: {_TYPE}")
    return target, read


def _require_counts(collective: str, target: Tensor, read: Tensor, *, shares: bool) -> None:
    size = everybody().size
    share, whole = (target, read) if shares else (read, target)
    if share.numel() * size != whole.numel():
        got = f"{target.numel()} elements {tuple(target.shape)}"
        rule = "the input's divided by the world size" if shares else "the input's times the world size"
        wanted = f"{rule}, {read.numel()} {tuple(read.shape)} and {size}: {_SIZE}"
        raise refused(RuntimeError, collective, "output_tensor", got, wanted)
