"""``mindspore.ops.operations._inner_ops``: the internal primitives that communicate (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.mindspore.ops.operations.comm_ops import AllGather, AllReduce, Receive, Send

__all__ = ["AllGather", "AllReduce", "Receive", "Send"]

__getattr__ = saying(__name__)
