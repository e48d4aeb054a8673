"""What MindSpore is asked: comm_func, mint.distributed, ops.communication, primitives, groups."""

from __future__ import annotations

from collshim.conformance.recorder.asked import Asked
from collshim.conformance.recorder.catalogue import mindspore_comm, mindspore_inplace

CALLS: list[Asked] = [*mindspore_comm.CALLS, *mindspore_inplace.CALLS]
