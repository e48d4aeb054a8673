"""Checks for all_gather_into_tensor and reduce_scatter_tensor: shapes only need the right number of elements."""

from __future__ import annotations

from torch import Tensor

from collshim.arrays import Array
from collshim.oneflow.comm.arguments import argument_error, readable, require_attribute, writable

_SIZE = "output tensor size must be equal to world_size times input tensor size"
_TYPE = "output tensor must have the same type as input tensor"


def require_rows(
    collective: str, output_tensor: Array, input_tensor: Array, size: int, *, shares: bool
) -> tuple[Tensor, Tensor]:
    """Return ``output_tensor`` for writing and ``input_tensor`` for reading, if element counts and dtypes fit.

    With ``shares``, the output is one rank's share of the input; without, the input is one rank's share of the output.
    """
    for name, value in (("output_tensor", output_tensor), ("input_tensor", input_tensor)):
        require_attribute(collective, name, value, "is_local")
    target = writable(collective, "output_tensor", output_tensor)
    source = readable(collective, "input_tensor", input_tensor)
    _require_counts(collective, target, source, size, shares=shares)
    if target.dtype != source.dtype:
        raise argument_error(
            RuntimeError, collective, "dtype of output_tensor", target.dtype, f"{source.dtype}: {_TYPE}"
        )
    return target, source


def _require_counts(collective: str, target: Tensor, source: Tensor, size: int, *, shares: bool) -> None:
    share, whole = (target, source) if shares else (source, target)
    if share.numel() * size != whole.numel():
        actual = f"{target.numel()} elements {tuple(target.shape)}"
        rule = "the input's divided by the world size" if shares else "the input's times the world size"
        expected = f"{rule}, {source.numel()} {tuple(source.shape)} and {size}: {_SIZE}"
        raise argument_error(RuntimeError, collective, "output_tensor", actual, expected)
