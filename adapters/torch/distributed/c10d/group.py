"""A group whose collectives are methods: what torch's C++ and its modules post on a ``torch.distributed.ProcessGroup``.

Methods take torch's two forms: lists and an options object, as C++ and ``torch.distributed`` call them, and a tensor
with the options one by one. Names are those of torch 2.13 and, where they changed, those until 2.12.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from torch import Tensor
from torch.distributed import PrefixStore, ReduceOp, Store

from collshim.communicator import Communicator
from collshim.torch.distributed.arguments import reduction
from collshim.torch.distributed.forms import outputs, parts_like, pieces, uncounted
from collshim.torch.distributed.membership import ProcessGroup
from collshim.torch.distributed.profiling import begun
from collshim.torch.distributed.synchronization import monitor
from collshim.torch.distributed.work import Call, Work, accepted, without_memory
from collshim.world import peek

Tensors = Tensor | Sequence[Tensor]
Timeout = timedelta | None


class CollectiveGroup(ProcessGroup):
    """A ``ProcessGroup`` with torch's methods; each posts one call and returns its ``Work`` at once.

    Results are written into the tensors that are given; gradients do not flow through.
    """

    _coalescing: list[Work] | None = None

    def broadcast(self, tensors: Tensors, opts: Any = 0, timeout: Timeout = None) -> Work:
        """Every rank's tensor holds the root's."""
        tensor, root = uncounted(_first(tensors)), _option(opts, "rootRank")
        return self._post("broadcast", [lambda comm: comm.broadcast(tensor, root, out=tensor)], [tensor], opts, timeout)

    def allreduce(self, tensors: Tensors, opts: Any = ReduceOp.SUM, timeout: Timeout = None) -> Work:
        """Every rank's tensor holds the reduction of all ranks' tensors."""
        tensor, op = uncounted(_first(tensors)), reduction(_option(opts, "reduceOp"))
        return self._post("all_reduce", [lambda comm: comm.all_reduce(tensor, op, out=tensor)], [tensor], opts, timeout)

    def allreduce_coalesced(self, tensors: Sequence[Tensor], opts: Any = ReduceOp.SUM) -> Work:
        """``allreduce`` of each tensor, in one call."""
        own, op = _detached(tensors), reduction(_option(opts, "reduceOp"))
        return self._post("all_reduce", [lambda comm: comm.all_reduce_coalesced(own, op, out=own)], own, opts)

    def reduce(self, tensors: Tensors, opts: Any = 0, op: Any = ReduceOp.SUM, timeout: Timeout = None) -> Work:
        """The root's tensor holds the reduction of all ranks' tensors; the others' are unchanged."""
        tensor, root = uncounted(_first(tensors)), _option(opts, "rootRank")
        reduce_op = reduction(getattr(opts, "reduceOp", op))
        out = tensor if root == self.rank() else None
        call: Call = lambda comm: comm.reduce(tensor, root, reduce_op, out=out)  # noqa: E731
        return self._post("reduce", [call], [tensor], opts, timeout)

    def allgather(self, outputs: Any, inputs: Tensors, opts: Any = None, timeout: Timeout = None) -> Work:
        """Every rank's list of outputs holds all ranks' input."""
        parts, tensor = _list(outputs), _one(inputs)
        return self._post("all_gather", [lambda comm: comm.all_gather(tensor, out=parts)], parts, opts, timeout)

    def allgather_coalesced(
        self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        """``allgather`` of each input; ``outputs[r]`` holds those of rank r."""
        calls = [_gathered(tensor, [_one(part[place]) for part in outputs]) for place, tensor in enumerate(inputs)]
        return self._post("all_gather", calls, [tensor for part in outputs for tensor in part], opts)

    def all_gather_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        """Every rank's output holds all ranks' input, end to end or stacked."""
        return self.all_gather_single_coalesced([output], [input], opts)

    def all_gather_single_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        """``all_gather_single`` of each input, in one call."""
        targets, sources = _detached(outputs), _detached(inputs)

        def call(comm: Communicator) -> Any:
            out = [_stacked("all_gather_single: output", *pair, comm) for pair in zip(targets, sources, strict=True)]
            if len(out) == 1:
                return comm.all_gather(sources[0], out=out[0])
            return comm.all_gather_coalesced(sources, out=out)

        return self._post("all_gather", [call], targets, opts)

    def gather(self, outputs: Any, inputs: Tensors, opts: Any = 0, timeout: Timeout = None) -> Work:
        """The root's list of outputs holds all ranks' input; the others give no outputs."""
        parts, tensor, root = _list(outputs), _one(inputs), _option(opts, "rootRank")
        return self._post("gather", [lambda comm: comm.gather(tensor, root, out=parts or None)], parts, opts, timeout)

    def scatter(self, outputs: Tensors, inputs: Any, opts: Any = 0, timeout: Timeout = None) -> Work:
        """Rank r's output holds the r-th of the root's inputs; the others give no inputs."""
        output, parts, root = uncounted(_first(outputs)), _list(inputs), _option(opts, "rootRank")
        return self._post(
            "scatter", [lambda comm: comm.scatter(parts or None, root, out=output)], [output], opts, timeout
        )

    def reduce_scatter(self, outputs: Tensors, inputs: Any, opts: Any = ReduceOp.SUM, timeout: Timeout = None) -> Work:
        """Rank r's output holds the reduction of all ranks' r-th inputs."""
        output, parts, op = _one(outputs), _list(inputs), reduction(_option(opts, "reduceOp"))
        call: Call = lambda comm: comm.reduce_scatter(parts, op, out=output)  # noqa: E731
        return self._post("reduce_scatter", [call], [output], opts, timeout)

    def reduce_scatter_single(self, output: Tensor, input: Tensor, opts: Any = ReduceOp.SUM) -> Work:
        """Rank r's output holds the reduction of the r-th part of all ranks' input, end to end or stacked."""
        return self.reduce_scatter_single_coalesced([output], [input], opts)

    def reduce_scatter_single_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = ReduceOp.SUM
    ) -> Work:
        """``reduce_scatter_single`` of each input, in one call."""
        targets, sources, op = _detached(outputs), _detached(inputs), reduction(_option(opts, "reduceOp"))

        def call(comm: Communicator) -> Any:
            parts = [
                _stacked("reduce_scatter_single: input", *pair, comm) for pair in zip(sources, targets, strict=True)
            ]
            if len(parts) == 1:
                return comm.reduce_scatter(parts[0], op, out=targets[0])
            return comm.reduce_scatter_coalesced(parts, op, out=targets)

        return self._post("reduce_scatter", [call], targets, opts)

    def alltoall(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None, timeout: Timeout = None
    ) -> Work:
        """Every rank's r-th output holds rank r's input for it."""
        out, parts = _detached(outputs), _detached(inputs)
        return self._post("all_to_all", [lambda comm: comm.all_to_all(parts, out=out)], out, opts, timeout)

    def all_to_all_single(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: Sequence[int] | None = None,
        input_split_sizes: Sequence[int] | None = None,
        opts: Any = None,
        timeout: Timeout = None,
    ) -> Work:
        """Every rank's output holds, end to end, all ranks' pieces of input for it; cut evenly without sizes."""
        out, source = uncounted(output), input.detach()

        def call(comm: Communicator) -> Any:
            parts = pieces("all_to_all_single: input", source, list(input_split_sizes or ()), comm)
            out_parts = pieces("all_to_all_single: output", out, list(output_split_sizes or ()), comm)
            return comm.all_to_all(parts, out=out_parts)

        return self._post("all_to_all", [call], [out], opts, timeout)

    def send(self, tensors: Tensors, dstRank: int, tag: int = 0) -> Work:
        """Rank ``dstRank`` of the group receives the tensor."""
        tensor = _one(tensors)
        return self._post("send", [lambda comm: comm.send(tensor, dstRank, tag)], [tensor])

    def recv(self, tensors: Tensors, srcRank: int | None, tag: int = 0) -> Work:
        """The tensor holds what rank ``srcRank`` of the group sends."""
        tensor = uncounted(_first(tensors))
        return self._post("recv", [lambda comm: comm.recv(srcRank, out=tensor, tag=tag)], [tensor])

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> Work:
        """The tensor holds what any rank sends; the work's ``source_rank`` says which."""
        return self.recv(tensors, None, tag)

    def barrier(self, opts: Any = None, timeout: Timeout = None) -> Work:
        """Its work is complete when every rank has called it."""
        return self._post("barrier", [lambda comm: comm.barrier()], [], opts, timeout)

    def monitored_barrier(self, timeout: Timeout = None, wait_all_ranks: bool = False) -> None:
        """Returns when every rank has called it; else rank 0 says who did not come."""
        monitor(self, timeout, wait_all_ranks)

    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single

    def set_timeout(self, timeout: timedelta) -> None:
        """How long a wait may take from now on."""
        self.deadline = timeout.total_seconds()

    def abort(self) -> None:
        """``shutdown``."""
        self.shutdown()

    def _post(
        self, title: str, calls: Sequence[Call], outputs: list[Tensor], opts: Any = None, timeout: Timeout = None
    ) -> Work:
        limit = _limit(getattr(opts, "timeout", timeout))
        if without_memory(outputs):
            return Work([], limit, outputs)
        event = begun(self.backend, title, outputs)
        works = [accepted(self, call) for call in calls]
        work = Work(works, self.deadline if limit is None else limit, outputs, event)
        if self._coalescing is not None:
            self._coalescing.append(work)
        return work.kept()

    def _start_coalescing(self, device: Any = None) -> None:
        """What is posted until ``_end_coalescing`` is waited for together."""
        self._coalescing = []

    def _end_coalescing(self, device: Any = None) -> Work:
        works_of_calls, self._coalescing = self._coalescing or [], None
        works = [part for work in works_of_calls for part in work._works]
        return Work(works, self.deadline, [tensor for work in works_of_calls for tensor in work._outputs]).kept()

    def _get_sequence_number_for_group(self) -> int:
        """How many calls were posted on the group."""
        return self.posted

    def _set_sequence_number_for_group(self) -> None:
        """Nothing: the engine counts from the start."""

    def get_group_store(self) -> Store | None:
        """The group's own part of the store that the ranks share; None where they are threads, which have none."""
        current_world = peek()
        store = None if current_world is None else current_world.store
        return None if store is None else PrefixStore(self.group_name, store)

    def _set_group_name(self, name: str) -> None:
        self._name = name

    def _set_group_desc(self, desc: str) -> None:
        self._desc = desc

    def getBackendName(self) -> str:
        """For C++, which would look for a gloo of its own under the name that this group was given."""
        return "collshim"


def _option(opts: Any, name: str) -> Any:
    """One of torch's options; or what was given in their place."""
    return getattr(opts, name, opts)


def _limit(timeout: Timeout) -> float | None:
    """Seconds; torch's options say with a negative or no time that none was set."""
    return timeout.total_seconds() if timeout is not None and timeout > timedelta(0) else None


def _first(tensors: Tensors) -> Tensor:
    return tensors if isinstance(tensors, Tensor) else tensors[0]


def _one(tensors: Tensors) -> Tensor:
    return _detached([_first(tensors)])[0]


def _list(tensors: Any) -> list[Tensor]:
    """A rank's list of tensors; C++ has a list of such lists, one per device."""
    is_nested = bool(tensors) and not isinstance(tensors[0], Tensor)
    return _detached(tensors[0] if is_nested else tensors)


def _detached(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [outputs(tensor).detach() for tensor in tensors]


def _gathered(tensor: Tensor, parts: list[Tensor]) -> Call:
    return lambda comm: comm.all_gather(tensor.detach(), out=parts)


def _stacked(what: str, whole: Tensor, part: Tensor, comm: Communicator) -> Tensor:
    """One part per rank, as long as there are as many elements: DTensor and FSDP pass flat buffers."""
    if whole.numel() == comm.size * part.numel() and whole.is_contiguous():
        return whole.view(comm.size, *part.shape)
    return parts_like(what, whole, part, comm)
