"""What the transport between threads keeps with a plan: how to compute such calls, and if the ranks share the work."""

from __future__ import annotations

import math
from collections.abc import Sequence

from collshim.calls.plan import Carrier, Plan
from collshim.transports.compute import Computation, computation

SHARED_BYTES = 1 << 21
"""Bytes, of all inputs or of all outputs, above which the waiting ranks share the work: to wake them for less takes
longer. One thread posts the work of a GPU."""


class ThreadCarrier(Carrier):
    """See ``Carrier``.

    Attributes:
        compute: computes calls whose ranks' plans have one signature; None if such calls need a closer look.
        ranks: the ranks that get a result.
        is_small: whether the last rank to come computes every result.
    """

    __slots__ = ("compute", "is_small", "ranks")

    compute: Computation | None
    ranks: Sequence[int]
    is_small: bool

    def __init__(self, plan: Plan) -> None:
        self.compute, self.ranks, self.is_small = None, (), True
        if plan.signature is None or plan.is_message or not plan.on_cpu or plan.call.is_ragged:
            return
        call, collective, size = plan.call, plan.collective, plan.size
        self.compute = computation(call)
        self.ranks = [rank for rank in range(size) if collective.gets_on(rank, call.root)]
        part = math.prod(plan.part or ()) * (call.dtype.itemsize if call.dtype is not None else 0)
        givers = size if collective.givers == "all" else 1
        given = part * givers * (size if collective.gives == "parts" else 1)
        got = part * len(self.ranks) * (size if collective.gets == "parts" else 1)
        self.is_small = max(given, got) <= SHARED_BYTES
