"""The process transport's part of a plan: the last calls that agreed, and everything derived from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from collshim.accelerator import ACCELERATOR
from collshim.arrays.arithmetic import of_booleans
from collshim.arrays.dtypes import NATIVE_NUMBERS
from collshim.calls.agreement import unlike_sites
from collshim.calls.allocation import allocator, fresh
from collshim.calls.call import Call
from collshim.calls.collective import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    GATHER,
    REDUCE,
    REDUCE_SCATTER,
    SCATTER,
)
from collshim.calls.plan import Carrier, InLine, Plan, Start
from collshim.calls.repeats import MakeRepeat
from collshim.calls.site import Caller
from collshim.layout import Parts
from collshim.transports.compute import Computation, computation
from collshim.transports.processes.backend import OF_BACKEND, OF_GROUP, Endpoint, Transfer
from collshim.transports.processes.fingerprint import Form, form_of, header_of, read
from collshim.transports.processes.gloo import transfer
from collshim.transports.shared_memory import layout
from collshim.transports.shared_memory.group import Movement

ASSUMED = b""
"""Stands for the encoded call if calls are not compared."""

_LINES = 64
"""The number of lines of the program for which a plan keeps the calls that agreed."""

_IN_LISTS = ("sum", "prod", "min", "max")


class ProcessCarrier(Carrier):
    """See ``Carrier``.

    Attributes:
        agreed: the last calls that agreed; the key is this rank's encoded call. If calls are not compared, the key
            ``ASSUMED`` has this rank's own call for every rank.
        transfer: the transfer of these calls, if calls are not compared.
        awaited: the headers of the messages that a receive has taken.
        is_even: whether every rank sends the same number of bytes as this rank, on the CPU.
        headers: the encoded call, by the line that made it.
        make_repeat: makes the ``Repeat`` of the plan's calls; None if the compiled core cannot repeat them.
    """

    __slots__ = (
        "agreed",
        "awaited",
        "headers",
        "in_line",
        "is_even",
        "make_repeat",
        "start",
        "takes_joined",
        "takes_lists",
        "transfer",
    )

    def __init__(self, plan: Plan, *, takes_joined: bool = False) -> None:
        self.takes_joined = takes_joined
        self.is_even = plan.on_cpu and plan.collective.givers == "all" and not plan.call.is_ragged
        self.agreed: dict[bytes, Agreed] = {}
        self.transfer: Transfer | None = None
        self.start: Start | None = None
        self.in_line: InLine | None = None
        self.make_repeat: MakeRepeat | None = None
        self.takes_lists = False
        self.awaited: tuple[bytes, ...] = ()
        self.headers: dict[tuple[int, int], tuple[Caller | None, bytes]] = {}

    def keep(self, header: bytes, agreed: Agreed) -> None:
        """Keep the calls that agreed with this rank's encoded call, which names the line that made it."""
        if header not in self.agreed and len(self.agreed) >= _LINES:
            del self.agreed[next(iter(self.agreed))]
        self.agreed[header] = agreed

    def allocate(self, plan: Plan) -> Tensor:
        """Allocate a result whose shape the plan knows."""
        return torch.empty(plan.shape or (), dtype=plan.call.dtype, device=plan.device)

    def header(self, call: Call, caller: Caller | None, limit: int) -> bytes:
        """Return the header of a call made at this line."""
        key = (0, 0) if caller is None else (id(caller.code), caller.line)
        entry = self.headers.get(key)
        if entry is None:  # keep the caller too: a new code object could have the id of one that was freed
            made = call if caller is None else call._replace(site=caller.site())
            entry = self.headers[key] = (caller, header_of(made, limit))
        return entry[1]


class Agreed:
    """The ranks' calls of one collective, which agree, and everything that this rank derives from them.

    It stays valid as long as every rank makes the same call again, so most calls find it in their plan. Methods take
    the plan as an argument: with a reference cycle, the memory of a call whose plan is not kept would be held until the
    garbage collector runs.

    Attributes:
        calls: in rank order.
        exchanged: the calls that the ranks exchanged; empty if they did not.
        are_known: whether the ranks exchanged their calls; otherwise every call is assumed to be like this rank's.
        joint: whether the ranks know that some rank needs a gradient.
        sites: text that names the ranks whose calls come from different lines; None if they agree or are not compared.
        device: the device of this rank's result: its own array's, or the root's if this rank has no array.
        is_on_gpu: whether the data moves between GPUs.
        is_ragged: whether some rank's parts have unequal shapes; the same on every rank.
        dtype: the data's dtype; None if no rank specifies it.
        transfer: starts moving the data; None until it is needed.
        headers: the encoded calls, if the ranks compared them in shared memory.
        movement: how the core computes the result from data in shared memory; None if it cannot.
    """

    __slots__ = (
        "_compute", "_forms", "_fresh", "_has_lists", "are_known", "calls", "device", "dtype", "exchanged", "headers",
        "is_on_gpu", "is_ragged", "joint", "movement", "sites", "transfer",
    )  # fmt: skip

    def __init__(self, plan: Plan, calls: Sequence[Call] | None = None, ranks: Sequence[int] | None = None) -> None:
        """Pass ``calls`` if the ranks exchanged them, and ``ranks``, in the world, to compare their lines."""
        own = plan.call
        self.are_known = calls is not None
        self.exchanged: Sequence[Call] = ()
        self.calls = calls = [own] * plan.size if calls is None else calls
        self.joint = any(call.needs_grad for call in calls)
        self.sites = None if ranks is None else unlike_sites(calls, ranks)
        giver = calls[own.root or 0].device
        self.device = torch.device(giver) if own.device == "any" != giver else plan.device
        self.is_on_gpu = self.device.type == ACCELERATOR
        self._has_lists = any(call.is_ragged for call in calls)
        self.is_ragged = self._has_lists and self._has_unequal_parts(own)
        self.dtype = next((call.dtype for call in calls if call.dtype is not None), None)
        self.transfer: Transfer | None = None
        self.headers: tuple[bytes, ...] | None = None
        self.movement: Movement | None = None
        self._compute: Computation | None = None
        self._forms: list[Form | None] = []
        self._fresh: Callable[[], Parts | None] | None = None

    def _has_unequal_parts(self, own: Call) -> bool:
        if own.collective is not ALL_TO_ALL:
            return True
        if not self.are_known:
            return not own.is_uniform
        return len({shape for call in self.calls for shape in call.sends or (call.shape,)}) > 1

    def set_movement(self, plan: Plan, headers: tuple[bytes, ...] | None) -> None:
        """Keep the encoded calls, and how the core computes this rank's result, unless there is more to do."""
        self.headers = headers
        if headers is not None and self.sites is None and not self.is_on_gpu and self._is_even():
            self.movement = movement(plan, self.calls, self.dtype)

    def _is_even(self) -> bool:
        """Return whether all ranks' parts have one shape, whether or not it was known before the call."""
        if not self._has_lists:
            return True
        if self.calls[0].collective is ALL_TO_ALL:
            return not self.is_ragged
        is_gathered = self.calls[0].collective in (ALL_GATHER, GATHER)
        return is_gathered and len({call.shape for call in self.calls}) == 1

    def allocate(self, plan: Plan) -> Any:
        """Allocate this rank's result."""
        if self._fresh is None:
            self._fresh = fresh(plan) if plan.shape is not None else allocator(self.calls, plan.rank, self.device)
        return self._fresh()

    def compute(self, plan: Plan, data: Sequence[bytearray], outputs: Parts | None) -> Parts | None:
        """Compute this rank's outputs from the bytes of all ranks' inputs."""
        compute = self._compute
        if not plan.gets:
            return outputs
        if compute is None:
            compute = self._compute = computation(self.calls[0], self.dtype)
            self._forms = [form_of(call, rank, plan.size) for rank, call in enumerate(self.calls)]
            if self._has_lists:
                self._fresh = allocator(self.calls, plan.rank, self.device)
        if outputs is None and self._fresh is not None:
            outputs = self._fresh()
        results: list[Any] = [None] * plan.size
        results[plan.rank] = outputs
        compute(list(map(read, data, self._forms)), results, (plan.rank,))
        return results[plan.rank]  # type: ignore[no-any-return]

    def prepare(self, plan: Plan) -> Transfer:
        """Make ``transfer`` and keep it."""
        self.transfer = start = self.make_transfer(plan)
        return start

    def make_transfer(self, plan: Plan, *, is_in_line: bool = False) -> Transfer:
        """Make a function that starts moving the data; with ``is_in_line``, in the caller's own stream on a GPU."""
        call = plan.call
        is_known = plan.shape is not None and not self.is_ragged
        allocate = fresh(plan) if is_known else allocator(self.calls, plan.rank, self.device)
        singles = OF_BACKEND if self.is_on_gpu else OF_GROUP
        end = Endpoint(plan.rank, plan.size, allocate, self.is_ragged, singles, is_in_line)
        if call.dtype is None:  # taken from the others' calls
            call = call._replace(dtype=self.dtype, device=self.device.type)
        elif self.is_ragged and call.collective is ALL_TO_ALL:
            peers = range(plan.size)
            expects = tuple(call.expected(peer) or self.calls[peer].sent(plan.rank) or () for peer in peers)
            call = call._replace(sends=tuple(call.sent(peer) or () for peer in peers), expects=expects)
        return transfer(call, end)


_WHATS = {
    BROADCAST: layout.FROM_ROOT,
    ALL_GATHER: layout.ALL_PARTS,
    GATHER: layout.ALL_PARTS,
    SCATTER: layout.PART_OF_ROOT,
    ALL_TO_ALL: layout.PART_OF_EACH,
    ALL_REDUCE: layout.REDUCED,
    REDUCE: layout.REDUCED,
    REDUCE_SCATTER: layout.REDUCED_PART,
}


_REDUCTIONS: dict[tuple[str, torch.dtype | None], int] = {
    (operation, getattr(torch, name)): layout.reduction(operation, name)
    for name in layout.NUMBERS
    for operation in layout.OPERATIONS
    if hasattr(torch, name)
}
"""The core's numbers of the reductions that it has."""

for _operation in layout.OPERATIONS:  # a boolean is a byte of 0 or 1
    _REDUCTIONS[_operation, torch.bool] = layout.reduction(of_booleans(_operation), "uint8")


def movement(plan: Plan, calls: Sequence[Call], dtype: torch.dtype | None) -> Movement | None:
    """Return how the core computes this rank's result of calls that agree; None if it cannot."""
    call, root = plan.call, plan.call.root or 0
    if not plan.gets:
        return Movement(layout.NOTHING, 0, root, 0)
    number = 0
    if plan.collective.reduces and not (number := _REDUCTIONS.get((call.reduce_op or "sum", dtype), 0)):
        return None
    giver = call if plan.collective.givers == "all" else calls[root]
    shape = giver.sends[0] if giver.sends else giver.shape or ()
    part = math.prod(shape) * (dtype.itemsize if dtype else 0)
    return Movement(_WHATS[plan.collective], number, root, part)


def takes_lists(call: Call) -> bool:
    """Return whether gloo reduces the tensors of a list together, without copying them."""
    return call.reduce_op in _IN_LISTS and call.dtype in NATIVE_NUMBERS
