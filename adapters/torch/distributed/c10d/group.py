"""A group whose collectives are methods, as torch's C++ and its modules call them on a ``ProcessGroup``.

Methods take torch's two forms: lists and an options object, as C++ and ``torch.distributed`` call them, or a tensor and
the options one by one. Methods have their names in torch 2.13, and also their names up to torch 2.12 if they are
different.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from datetime import timedelta
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor
from torch.distributed import ReduceOp

from collshim.adapting.refusing import refuse
from collshim.calls.collective import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    GATHER,
    RECV,
    REDUCE,
    REDUCE_SCATTER,
    SCATTER,
    SEND,
    Collective,
)
from collshim.communicator import Communicator
from collshim.together import Together
from collshim.torch.distributed import collectives
from collshim.torch.distributed.arguments import NAMED, reduction
from collshim.torch.distributed.c10d import several
from collshim.torch.distributed.c10d.hooked import hooked
from collshim.torch.distributed.c10d.torch_group import TorchGroup
from collshim.torch.distributed.cuts import cut
from collshim.torch.distributed.forms import ints, outputs, parts_like
from collshim.torch.distributed.posting import UNKNOWN, Call, repeat, repeat_barrier, repeat_message, start
from collshim.torch.distributed.sparse import sum_sparse
from collshim.torch.distributed.synchronization import monitor
from collshim.torch.distributed.work import DONE, Work
from collshim.work import COMPLETE

_SEND, _ISEND, _RECV, _IRECV = (
    inspect.unwrap(function).__code__
    for function in (torch.distributed.send, torch.distributed.isend, torch.distributed.recv, torch.distributed.irecv)
)

_BETWEEN = 6
"""The number of frames in which ``_waits_in`` looks for torch's function."""

Tensors = Tensor | Sequence[Tensor]
Timeout = timedelta | None


@hooked
class CollectiveGroup(TorchGroup):
    """A ``ProcessGroup`` with torch's methods; each posts one call and returns its ``Work`` at once.

    Results are written into the tensors that are passed; gradients do not flow through the calls. ``several`` explains
    the meaning of a list of more than one tensor.
    """

    def broadcast(self, tensors: Tensors, opts: Any = 0, timeout: Timeout = None) -> Work:
        """Copy the root's tensor to every rank's tensor."""
        own, root, index = _all(tensors), _option(opts, "rootRank"), getattr(opts, "rootTensor", 0)
        if len(own) > 1 or index:
            return self._post("broadcast", several.broadcast, (own, root, index), own, opts, timeout)
        like = BROADCAST, own[0], own[0], None, root
        return self._post("broadcast", collectives.broadcast, (own[0], root), own, opts, timeout, like=like)

    def allreduce(self, tensors: Tensors, opts: Any = ReduceOp.SUM, timeout: Timeout = None) -> Work:
        """Reduce all ranks' tensors, which may be sparse, into every rank's tensor."""
        own, op = _all(tensors), reduction(_option(opts, "reduceOp"))
        if len(own) > 1:
            return self._post("all_reduce", several.all_reduce, (own, op), own, opts, timeout)
        if own[0].layout is torch.sparse_coo:
            return self._post("sparse_all_reduce", sum_sparse, (own[0], op), own, opts, timeout)
        like = ALL_REDUCE, own[0], own[0], op, None
        return self._post("all_reduce", collectives.all_reduce, (own[0], op), own, opts, timeout, like=like)

    def allreduce_coalesced(self, tensors: Sequence[Tensor], opts: Any = ReduceOp.SUM) -> Work:
        """Reduce several tensors over all ranks in one call; every rank's tensors receive the results."""
        own, op = _all(tensors), reduction(_option(opts, "reduceOp"))
        return self._post("all_reduce", collectives.all_reduce_coalesced, (own, op), own, opts)

    def reduce(self, tensors: Tensors, opts: Any = 0, op: Any = ReduceOp.SUM, timeout: Timeout = None) -> Work:
        """Reduce all ranks' tensors into the root's tensor; the other ranks' tensors do not change."""
        tensor, root = _one("reduce", tensors), _option(opts, "rootRank")
        name = reduction(getattr(opts, "reduceOp", op))
        like = REDUCE, tensor, tensor, name, root
        return self._post("reduce", collectives.reduce, (tensor, root, name), [tensor], opts, timeout, like=like)

    def allgather(self, outputs: Any, inputs: Tensors, opts: Any = None, timeout: Timeout = None) -> Work:
        """Gather all ranks' input into every rank's list of outputs."""
        own, parts = _all(inputs), _list(outputs)
        if len(own) > 1:
            results = [tensor for part in outputs for tensor in part]
            return self._post("all_gather", several.all_gather, (outputs, own), results, opts, timeout)
        like = ALL_GATHER, own[0], parts, None, None
        return self._post("all_gather", collectives.all_gather, (parts, own[0]), parts, opts, timeout, like=like)

    def allgather_coalesced(
        self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        """Gather rank r's inputs into every rank's ``outputs[r]``."""

        def call(comm: Communicator) -> Any:
            parts = [[part[place] for part in outputs] for place in range(len(inputs))]
            return Together([collectives.all_gather(comm, *pair) for pair in zip(parts, inputs, strict=True)])

        return self._post("all_gather", call, (), [tensor for part in outputs for tensor in part], opts)

    def all_gather_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        """Gather all ranks' input into every rank's output, end to end or stacked."""
        if self._waits(opts, None) and self._repeats(opts, None, [], ALL_GATHER, input, output):
            return DONE
        work = self.all_gather_single_coalesced([output], [input], opts)
        cut("_allgather_base_", [output], [input])
        return work

    def all_gather_single_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        """Gather all ranks' i-th input into every rank's i-th output, end to end or stacked, in one call."""
        targets, sources = _detach(outputs), _detach(inputs)

        def call(comm: Communicator) -> Any:
            out = [_stack("all_gather_single: output", *pair, comm) for pair in zip(targets, sources, strict=True)]
            if len(out) == 1:
                return comm.all_gather(sources[0], out=out[0])
            return comm.all_gather_coalesced(sources, out=out)

        size = self.size() if len(targets) == 1 else None
        return self._post("all_gather", call, (), targets, opts, size=size)

    def gather(self, outputs: Any, inputs: Tensors, opts: Any = 0, timeout: Timeout = None) -> Work:
        """Gather all ranks' input into the root's list of outputs; the other ranks pass no outputs."""
        tensor, parts, root = _one("gather", inputs), _list(outputs), _option(opts, "rootRank")
        like = GATHER, tensor, parts, None, root
        return self._post("gather", collectives.gather, (tensor, parts, root), parts, opts, timeout, like=like)

    def gather_single(self, output: Tensor | None, input: Tensor, opts: Any = 0) -> Work:
        """Gather all ranks' input, end to end, into the root's output; the other ranks' output is None, or ignored."""
        root = _option(opts, "rootRank")
        whole = output if root == self.rank() else None
        outputs = [] if whole is None else [whole]
        return self._post("gather", collectives.gather_single, (input, whole, root), outputs, opts)

    def scatter(self, outputs: Tensors, inputs: Any, opts: Any = 0, timeout: Timeout = None) -> Work:
        """Send the root's r-th input to rank r's output; the other ranks pass no inputs."""
        output, parts, root = _one("scatter", outputs), _list(inputs), _option(opts, "rootRank")
        like = SCATTER, parts, output, None, root
        return self._post("scatter", collectives.scatter, (output, parts, root), [output], opts, timeout, like=like)

    def reduce_scatter(self, outputs: Tensors, inputs: Any, opts: Any = ReduceOp.SUM, timeout: Timeout = None) -> Work:
        """Reduce all ranks' r-th inputs into rank r's output."""
        output, parts, op = _one("reduce_scatter", outputs), _list(inputs), reduction(_option(opts, "reduceOp"))
        like = REDUCE_SCATTER, parts, output, op, None
        arguments = output, parts, op
        return self._post("reduce_scatter", collectives.reduce_scatter, arguments, [output], opts, timeout, like=like)

    def reduce_scatter_single(self, output: Tensor, input: Tensor, opts: Any = ReduceOp.SUM) -> Work:
        """Reduce the r-th part of all ranks' input, end to end or stacked, into rank r's output."""
        if self._waits(opts, None) and input.is_contiguous() and input.numel() == self.size() * output.numel():
            parts = input.view(self.size(), *output.shape)  # as it was posted before
            if self._repeats(opts, None, [], REDUCE_SCATTER, parts, output, reduction(_option(opts, "reduceOp"))):
                return DONE
        work = self.reduce_scatter_single_coalesced([output], [input], opts)
        cut("_reduce_scatter_base_", [output], [input])
        return work

    def reduce_scatter_single_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = ReduceOp.SUM
    ) -> Work:
        """Reduce the r-th part of all ranks' i-th input into rank r's i-th output, in one call."""
        targets, sources, op = _detach(outputs), _detach(inputs), reduction(_option(opts, "reduceOp"))

        def call(comm: Communicator) -> Any:
            parts = [_stack("reduce_scatter_single: input", *pair, comm) for pair in zip(sources, targets, strict=True)]
            if len(parts) == 1:
                return comm.reduce_scatter(parts[0], op, out=targets[0])
            return comm.reduce_scatter_coalesced(parts, op, out=targets)

        return self._post("reduce_scatter", call, (), targets, opts)

    def alltoall(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None, timeout: Timeout = None
    ) -> Work:
        """Send each rank's r-th input to rank r; inputs arrive in rank order."""
        places, parts = list(outputs), list(inputs)
        like = ALL_TO_ALL, parts, places, None, None
        return self._post("all_to_all", collectives.all_to_all, (places, parts), places, opts, timeout, like=like)

    def all_to_all_single(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: Sequence[int] | None = None,
        input_split_sizes: Sequence[int] | None = None,
        opts: Any = None,
        timeout: Timeout = None,
    ) -> Work:
        """Send each rank's r-th piece of input to rank r, end to end in its output; equal pieces without sizes."""
        receives = ints("output_split_sizes", output_split_sizes)
        sends = ints("input_split_sizes", input_split_sizes)
        like = None if receives or sends else (ALL_TO_ALL, input, output, None, None)
        arguments = (output, input, receives, sends)
        return self._post("all_to_all", collectives.all_to_all_single, arguments, [output], opts, timeout, like=like)

    def send(self, tensors: Tensors, dstRank: int, tag: int = 0) -> Work:
        """Send the tensor to rank ``dstRank`` of the group."""
        tensor = _one("send", tensors)
        return self._pass("send", collectives.send, (SEND, tensor, dstRank, tag), waits=_waits_in(_SEND, _ISEND))

    def recv(self, tensors: Tensors, srcRank: int | None, tag: int = 0) -> Work:
        """Receive the message from rank ``srcRank`` of the group in the tensor."""
        tensor = _one("recv", tensors)
        return self._pass("recv", collectives.recv, (RECV, tensor, srcRank, tag), waits=_waits_in(_RECV, _IRECV))

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> Work:
        """Receive a message from any rank in the tensor; the work's ``source_rank`` returns the sender."""
        return self.recv(tensors, None, tag)

    def barrier(self, opts: Any = None, timeout: Timeout = None) -> Work:
        """Post a barrier; the work is complete when every rank has called it."""
        if self._waits(opts, timeout) and repeat_barrier(self) is not UNKNOWN:
            return DONE
        return self._post("barrier", collectives.barrier, (), [], opts, timeout)

    def monitored_barrier(self, timeout: Timeout = None, wait_all_ranks: bool = False) -> None:
        """Wait until every rank has called this; if some do not, rank 0's error names them."""
        monitor(self, timeout, wait_all_ranks)

    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single
    gather_into_tensor = gather_single
    allreduce_sparse = allreduce

    def _post(
        self,
        title: str,
        call: Call,
        arguments: tuple[Any, ...],
        outputs: list[Tensor],
        opts: Any = None,
        timeout: Timeout = None,
        size: int | None = None,
        like: tuple[Any, ...] | None = None,
    ) -> Work:
        """Post a call; for calls that can be repeated, ``like`` has the arguments of ``_repeats``."""
        if like is not None and (repeated := self._repeats(opts, timeout, outputs, *like)) is not None:
            return repeated
        deadline = _limit(getattr(opts, "timeout", timeout))
        work = start(self, title, call, arguments, outputs, deadline=deadline, size=size)
        if self._coalescing is not None:
            self._coalescing.append(work)
        return work.keep()

    def _pass(
        self, title: str, call: Call, message: tuple[Collective, Tensor, int | None, int], *, waits: bool
    ) -> Work:
        """Send or receive a message; ``waits`` is whether the caller waits at once, on the CPU."""
        collective, tensor, peer, tag = message
        if self._coalescing is None and peer is not None:
            work = repeat_message(self, collective, tensor, (None, peer), tag, waits=waits and tensor.is_cpu)
            if work is not UNKNOWN:
                return DONE if work is COMPLETE else work.keep()
        return self._post(title, call, (tensor, peer, tag), [tensor])

    def _waits(self, opts: Any, timeout: Timeout) -> bool:
        """Return whether the caller waits at once, with the group's timeout."""
        return not getattr(opts, "asyncOp", True) and self._is_usual(opts, timeout)

    def _is_usual(self, opts: Any, timeout: Timeout) -> bool:
        """Return whether a call is not coalesced with others, and has the group's timeout."""
        return self._coalescing is None and _limit(getattr(opts, "timeout", timeout)) is None

    def _repeats(
        self,
        opts: Any,
        timeout: Timeout,
        outputs: list[Tensor],
        collective: Collective,
        array: Any,
        out: Any,
        op: Any = None,
        root: int | None = None,
    ) -> Work | None:
        """Post a call if it is like an earlier one, and return its work, which is ``DONE`` if the caller waits at once.

        ``array`` and ``out`` are as for ``posting.repeat``; ``op`` is the engine's name, ``root`` a rank of the group.
        """
        named, ranks = None if op is None else NAMED.get(op), None if root is None else (None, root)
        if not self._is_usual(opts, timeout) or (op is not None and named is None):
            return None
        is_async = getattr(opts, "asyncOp", True)
        work = repeat(self, is_async, outputs, collective, array, out, named, ranks)
        if work is UNKNOWN:
            return None
        return work.keep() if is_async else DONE


def _waits_in(function: CodeType, posts: CodeType) -> bool:
    """Return whether ``posts`` called the current method for a torch function, which waits at once.

    If the group has hooks, their functions are in between.
    """
    frame: FrameType | None = sys._getframe(2)
    for _ in range(_BETWEEN):
        if frame is None or frame.f_code is posts:
            break
        frame = frame.f_back
    within = None if frame is None else frame.f_back
    return within is not None and within.f_code is function


def _option(opts: Any, name: str) -> Any:
    """Return an attribute of torch's options object, or the value that was passed instead of the object."""
    return getattr(opts, name, opts)


def _limit(timeout: Timeout) -> float | None:
    """Convert a timeout to seconds; None if it is None, zero or negative, as it is in torch's options by default."""
    return timeout.total_seconds() if timeout is not None and timeout > timedelta(0) else None


def _all(tensors: Tensors) -> list[Tensor]:
    """Return a rank's tensors as a list, which is not empty."""
    own = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    return own or refuse(NotImplementedError, "There were no tensor arguments to this function: its list is empty")


def _one(method: str, tensors: Tensors) -> Tensor:
    """Return a rank's only tensor."""
    own = _all(tensors)
    if len(own) != 1:
        refuse(RuntimeError, f"{method}: {len(own)} tensors, should be a single one")
    return own[0]


def _list(tensors: Any) -> list[Tensor]:
    """Return a rank's list of tensors; C++ passes a list of such lists, one per device."""
    is_nested = bool(tensors) and not isinstance(tensors[0], Tensor)
    return list(tensors[0] if is_nested else tensors)


def _detach(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [outputs(tensor).detach() for tensor in tensors]


def _stack(what: str, whole: Tensor, part: Tensor, comm: Communicator) -> Tensor:
    """Return ``whole`` as one part per rank, if the number of elements fits: DTensor and FSDP pass flat buffers."""
    if whole.numel() == comm.size * part.numel() and whole.is_contiguous():
        return whole.view(comm.size, *part.shape)
    return parts_like(what, whole, part, comm)
