"""How a communicator is split into subgroups, configured and closed; also its barrier, which sends no data."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import torch

from collshim.calls import validation
from collshim.calls.call import Call
from collshim.calls.collective import BARRIER
from collshim.calls.recognizer import Recognizer
from collshim.calls.repeats import may_keep
from collshim.calls.site import caller
from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.forks import remember
from collshim.repeating import Repeating
from collshim.transports import Transport
from collshim.work import Work

L = TypeVar("L", bound="Lifetime")


class Lifetime(Repeating):
    """``Communicator``'s methods that send no data."""

    _closes_if_dropped = False

    def __init__(self, transport: Transport, ranks: Sequence[int], name: str, timeout: float | None = None) -> None:
        super().__init__(transport, ranks, name, timeout)
        self._subgroups: dict[tuple[int, ...], int] = {}
        remember(self)

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        """Close a subgroup that the program dropped; at the end of the process, modules have lost their names.

        ``weakref.finalize`` would keep the transport, and with it this communicator while calls are in flight. The
        garbage collector frees that reference cycle.
        """
        if self._closes_if_dropped and not is_ending():
            self._transport.drop()

    def post_barrier(self, *, waits: bool) -> Work[None]:
        """Post a barrier; ``waits`` as in ``repeat``."""
        known = self._plans.get(BARRIER)
        if known is None:
            plan = self._plan(Call(BARRIER), None, torch.device("cpu"))
            known = self._plans[BARRIER] = Recognizer(plan)
        is_alone = not waits and self.is_alone()
        if is_alone and self.repeats and (work := self._repeat_in_core(BARRIER, None, None, None, None)) is not None:
            return work
        work = self._start(known.plan, None, None, None, None, None, waits)
        if is_alone and may_keep(known):
            self._keep_posted(known, None, None, None, None)
        return work

    def subgroup(self: L, ranks: Sequence[int], *, kept: bool = False) -> L | None:
        """Return a communicator of the given ranks of this group, in the given order; None on all other ranks.

        Every member must call this; other ranks need not. If several subgroups have the same ranks, the members must
        make them in the same order. The subgroup is closed when the program drops it; its calls in progress complete.
        If it is still open when the world is closed, a ResourceWarning names it, unless ``kept`` is True.

        Examples:
            >>> def swapped(comm):
            ...     group = comm.subgroup([1, 0])
            ...     return group.rank, group.all_gather(np.array([comm.rank])).wait().ravel()
            >>> ranks(swapped)
            [(1, array([1, 0])), (0, array([1, 0]))]
        """
        part = self._split(ranks)
        if part is None:
            return None
        transport, members, key = part
        transport.made_at = "" if kept else caller().site()
        name = f"{self.name}/{key}"
        communicator = type(self)(transport, [self.ranks[rank] for rank in members], name, self.timeout)
        communicator._closes_if_dropped = True
        return communicator

    def _split(self, ranks: Sequence[int]) -> tuple[Transport, tuple[int, ...], str] | None:
        """Make the transport of a subgroup, which the caller closes; return it with the ranks and the name."""
        if not isinstance(ranks, Iterable):
            text = validation.error_text(self, "subgroup", "rank list", repr(ranks), "a list of ranks")
            raise ArgumentTypeError(text)
        members = tuple(validation.rank_of(self, "subgroup", "rank", rank) for rank in ranks)
        if len(set(members)) != len(members) or not members:
            expected = "one or more ranks, each once"
            raise ArgumentValueError(validation.error_text(self, "subgroup", "rank list", list(members), expected))
        count = self._subgroups.get(members, 0) + 1
        key = f"{'-'.join(map(str, members))}#{count}"
        transport = self._transport.split(members, key)
        self._subgroups[members] = count  # not before: ranks that try again must meet
        return None if transport is None else (transport, members, key)

    @property
    def nccl_options(self) -> Any:
        """The options, set by ``set_nccl_options``, with which NCCL connects the group; None for torch's defaults."""
        return self._transport.nccl_options

    def set_nccl_options(self, options: Any) -> None:
        """Let NCCL connect the group with options of ``torch.distributed.ProcessGroupNCCL.Options``.

        Every rank calls this before its first call on a GPU. The group sets its name, ranks and timeout itself. The
        options have no effect if NCCL does not carry the group's calls: with a single rank, with ranks that are
        threads, and for CPU tensors.

        Raises:
            ArgumentTypeError: the options are of another class.
            ArgumentValueError: NCCL has already connected the ranks, with other options; or ``split_from`` is set.
        """
        self._transport.set_nccl_options(options)

    def settle(self) -> None:
        """Wait until the GPU is done with this rank's calls.

        Raises:
            DeadlineError, PeerError: a call was aborted, and that was not reported yet. On CUDA a wait orders streams,
                so a call may fail after it.
        """
        self._transport.settle()

    def close(self) -> None:
        """Leave the group; later calls raise ``BrokenCommunicatorError``.

        Raises:
            DeadlineError, PeerError: as for ``settle``; the rank has left the group even then.
        """
        self._log("closed")
        self.forget_plans()
        self._transport.close()

    def announce_leaving(self, why: str, *, stays: bool = False) -> None:
        """Report to the other ranks that this rank makes no further calls.

        Args:
            why: the reason, for their error texts.
            stays: whether this process runs until the other ranks' calls are over.
        """
        self._transport.leave(why, stays=stays)
