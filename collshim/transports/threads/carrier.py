"""The threads transport's part of a plan: how to compute the plan's calls, and whether the ranks share the work."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from collshim.calls.allocation import allocator
from collshim.calls.plan import Carrier, Plan
from collshim.layout import Parts
from collshim.transports.compute import Computation, computation

SHARED_BYTES = 1 << 21
"""The size of all inputs, or of all outputs, in bytes, above which waiting ranks share the work; below it, waking them
takes longer than the work. Work on a GPU is enqueued by a single thread."""


class ThreadCarrier(Carrier):
    """See ``Carrier``.

    Attributes:
        compute: computes calls if all ranks' plans have the same signature; None if the calls need a closer look.
        ranks: the ranks that receive a result.
        is_small: whether the last rank to arrive computes every result.
        fresh: allocates the result of a rank without ``out`` before the computation; None if the computation allocates
            it.
        runs_alone: whether a group of one rank computes the call when it is started.
    """

    __slots__ = ("compute", "fresh", "is_small", "ranks", "runs_alone")

    compute: Computation | None
    ranks: Sequence[int]
    is_small: bool
    fresh: Callable[[], Parts | None] | None
    runs_alone: bool

    def __init__(self, plan: Plan) -> None:
        self.compute, self.fresh, self.ranks, self.is_small, self.runs_alone = None, None, (), True, False
        call, collective, size = plan.call, plan.collective, plan.size
        gives_lists = call.discovers  # all other calls that discover shapes have no signature
        is_uneven = not (call.sends is None and call.expects is None) and not gives_lists
        if plan.signature is None or plan.is_message or not plan.on_cpu or is_uneven:
            return
        self.compute = computation(call)
        self.ranks = collective.getters(call.root, size)
        part = math.prod(plan.part or ()) * (call.dtype.itemsize if call.dtype is not None else 0)
        givers = size if collective.givers == "all" else 1
        given = part * givers * (size if collective.gives == "parts" else 1)
        got = part * len(self.ranks) * (size if collective.gets == "parts" else 1)
        self.is_small = max(given, got) <= SHARED_BYTES
        if self.ranks and (gives_lists or not self.is_small):
            self.fresh = allocator([call] * size, self.ranks[0], plan.device)
        self.runs_alone = size == 1 and not (gives_lists or call.needs_grad)
