"""``mindspore.ops.operations._inner_ops``: primitives for dynamic shapes (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

from collshim.adapting.absent import saying
from collshim.mindspore.ops.operations.comm_ops import AllGather, AllReduce, Receive, Send
from collshim.mindspore.ops.primitive import Primitive

__all__ = ["AllGather", "AllReduce", "ConvertToDynamic", "GpuConvertToDynamicShape", "Receive", "Send"]


class GpuConvertToDynamicShape(Primitive):
    """The identity: shapes are those of the call."""

    def __init__(self) -> None:
        super().__init__("GpuConvertToDynamicShape")

    def __call__(self, input: Any) -> Any:
        """Return the input."""
        return input


class ConvertToDynamic(Primitive):
    """The identity: shapes are those of the call."""

    def __init__(self, is_dynamic_rank: bool = False) -> None:
        super().__init__("ConvertToDynamic")
        self.add_prim_attr("is_dynamic_rank", is_dynamic_rank)

    def __call__(self, input: Any) -> Any:
        """Return the input."""
        return input


__getattr__ = saying(__name__)
