"""A group whose collectives are methods, as torch's C++ and its modules call them on a ``ProcessGroup``.

Methods take torch's two forms: lists and an options object, as C++ and ``torch.distributed`` call them, or a tensor and
the options one by one. Names are those of torch 2.13, and those up to 2.12 if they changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor
from torch.distributed import PrefixStore, ReduceOp, Store, destroy_process_group

from collshim.communicator import Communicator
from collshim.together import Together
from collshim.torch.distributed import collectives
from collshim.torch.distributed.arguments import reduction
from collshim.torch.distributed.cuts import cut
from collshim.torch.distributed.forms import outputs, parts_like
from collshim.torch.distributed.membership import ProcessGroup
from collshim.torch.distributed.posting import Call, start
from collshim.torch.distributed.synchronization import monitor
from collshim.torch.distributed.work import Work
from collshim.world import peek

Tensors = Tensor | Sequence[Tensor]
Timeout = timedelta | None


class CollectiveGroup(ProcessGroup):
    """A ``ProcessGroup`` with torch's methods; each posts one call and returns its ``Work`` at once.

    Results are written into the tensors that are passed; gradients do not flow through.
    """

    _coalescing: list[Work] | None = None

    supports_splitting = supports_shrinking = supports_time_estimate = False
    """torch reads these: it then connects no group early for ``device_id``, and makes groups by ``new_group``."""

    def broadcast(self, tensors: Tensors, opts: Any = 0, timeout: Timeout = None) -> Work:
        """Every rank's tensor holds the root's."""
        tensor, root = _first(tensors), _option(opts, "rootRank")
        return self._post("broadcast", collectives.broadcast, (tensor, root), [tensor], opts, timeout)

    def allreduce(self, tensors: Tensors, opts: Any = ReduceOp.SUM, timeout: Timeout = None) -> Work:
        """Every rank's tensor holds the reduction of all ranks' tensors."""
        tensor, op = _first(tensors), reduction(_option(opts, "reduceOp"))
        return self._post("all_reduce", collectives.all_reduce, (tensor, op), [tensor], opts, timeout)

    def allreduce_coalesced(self, tensors: Sequence[Tensor], opts: Any = ReduceOp.SUM) -> Work:
        """Every rank's tensors hold the reductions of all ranks' tensors, in one call."""
        own, op = list(tensors), reduction(_option(opts, "reduceOp"))
        return self._post("all_reduce", collectives.all_reduce_coalesced, (own, op), own, opts)

    def reduce(self, tensors: Tensors, opts: Any = 0, op: Any = ReduceOp.SUM, timeout: Timeout = None) -> Work:
        """The root's tensor holds the reduction of all ranks' tensors; the other ranks' are unchanged."""
        tensor, root = _first(tensors), _option(opts, "rootRank")
        arguments = (tensor, root, reduction(getattr(opts, "reduceOp", op)))
        return self._post("reduce", collectives.reduce, arguments, [tensor], opts, timeout)

    def allgather(self, outputs: Any, inputs: Tensors, opts: Any = None, timeout: Timeout = None) -> Work:
        """Every rank's list of outputs holds all ranks' input."""
        parts = _list(outputs)
        return self._post("all_gather", collectives.all_gather, (parts, _first(inputs)), parts, opts, timeout)

    def allgather_coalesced(
        self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        """Every rank's ``outputs[r]`` holds rank r's inputs."""

        def call(comm: Communicator) -> Any:
            parts = [[part[place] for part in outputs] for place in range(len(inputs))]
            return Together([collectives.all_gather(comm, *pair) for pair in zip(parts, inputs, strict=True)])

        return self._post("all_gather", call, (), [tensor for part in outputs for tensor in part], opts)

    def all_gather_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        """Every rank's output holds all ranks' input, end to end or stacked."""
        work = self.all_gather_single_coalesced([output], [input], opts)
        cut("_allgather_base_", [output], [input])
        return work

    def all_gather_single_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        """Every rank's i-th output holds all ranks' i-th input, end to end or stacked, in one call."""
        targets, sources = _detach(outputs), _detach(inputs)

        def call(comm: Communicator) -> Any:
            out = [_stack("all_gather_single: output", *pair, comm) for pair in zip(targets, sources, strict=True)]
            if len(out) == 1:
                return comm.all_gather(sources[0], out=out[0])
            return comm.all_gather_coalesced(sources, out=out)

        return self._post("all_gather", call, (), targets, opts)

    def gather(self, outputs: Any, inputs: Tensors, opts: Any = 0, timeout: Timeout = None) -> Work:
        """The root's list of outputs holds all ranks' input; the other ranks pass no outputs."""
        parts = _list(outputs)
        arguments = (_first(inputs), parts, _option(opts, "rootRank"))
        return self._post("gather", collectives.gather, arguments, parts, opts, timeout)

    def scatter(self, outputs: Tensors, inputs: Any, opts: Any = 0, timeout: Timeout = None) -> Work:
        """Rank r's output holds the r-th of the root's inputs; the other ranks pass no inputs."""
        output = _first(outputs)
        arguments = (output, _list(inputs), _option(opts, "rootRank"))
        return self._post("scatter", collectives.scatter, arguments, [output], opts, timeout)

    def reduce_scatter(self, outputs: Tensors, inputs: Any, opts: Any = ReduceOp.SUM, timeout: Timeout = None) -> Work:
        """Rank r's output holds the reduction of all ranks' r-th inputs."""
        output = _first(outputs)
        arguments = (output, _list(inputs), reduction(_option(opts, "reduceOp")))
        return self._post("reduce_scatter", collectives.reduce_scatter, arguments, [output], opts, timeout)

    def reduce_scatter_single(self, output: Tensor, input: Tensor, opts: Any = ReduceOp.SUM) -> Work:
        """Rank r's output holds the reduction of the r-th part of all ranks' input, end to end or stacked."""
        work = self.reduce_scatter_single_coalesced([output], [input], opts)
        cut("_reduce_scatter_base_", [output], [input])
        return work

    def reduce_scatter_single_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = ReduceOp.SUM
    ) -> Work:
        """Rank r's i-th output holds the reduction of the r-th part of all ranks' i-th input, in one call."""
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
        """Every rank's r-th output holds rank r's input for it."""
        places = list(outputs)
        return self._post("all_to_all", collectives.all_to_all, (places, list(inputs)), places, opts, timeout)

    def all_to_all_single(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: Sequence[int] | None = None,
        input_split_sizes: Sequence[int] | None = None,
        opts: Any = None,
        timeout: Timeout = None,
    ) -> Work:
        """Every rank's output holds, end to end, all ranks' pieces of input for it; equal pieces without sizes."""
        arguments = (output, input, list(output_split_sizes or ()), list(input_split_sizes or ()))
        return self._post("all_to_all", collectives.all_to_all_single, arguments, [output], opts, timeout)

    def send(self, tensors: Tensors, dstRank: int, tag: int = 0) -> Work:
        """Rank ``dstRank`` of the group receives the tensor."""
        tensor = _first(tensors)
        return self._post("send", collectives.send, (tensor, dstRank, tag), [tensor])

    def recv(self, tensors: Tensors, srcRank: int | None, tag: int = 0) -> Work:
        """The tensor holds the message from rank ``srcRank`` of the group."""
        tensor = _first(tensors)
        return self._post("recv", collectives.recv, (tensor, srcRank, tag), [tensor])

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> Work:
        """The tensor holds a message from any rank; the work's ``source_rank`` says which."""
        return self.recv(tensors, None, tag)

    def barrier(self, opts: Any = None, timeout: Timeout = None) -> Work:
        """Every rank has called the barrier when the work is complete."""
        return self._post("barrier", collectives.barrier, (), [], opts, timeout)

    def monitored_barrier(self, timeout: Timeout = None, wait_all_ranks: bool = False) -> None:
        """Wait until every rank has called this; if some do not, rank 0's error names them."""
        monitor(self, timeout, wait_all_ranks)

    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single

    @property
    def options(self) -> Any:
        """The NCCL options passed for the group; None for torch's defaults."""
        return self.communicator.nccl_options

    def supports_tensor_alloc(self, device: torch.device) -> bool:
        """Return False, so that ``fully_shard`` takes its buffers from torch's allocator."""
        return False

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long a wait may take from now on."""
        self.deadline = timeout.total_seconds()

    def shutdown(self) -> None:
        """Leave the group, at the first call; torch forgets it after this, also if this raises."""
        try:
            super().shutdown()
        except BaseException:
            if self in torch.distributed.distributed_c10d._world.pg_map:
                destroy_process_group(self)
            raise

    def abort(self) -> None:
        """Call ``shutdown``."""
        self.shutdown()

    def _post(
        self,
        title: str,
        call: Call,
        arguments: tuple[Any, ...],
        outputs: list[Tensor],
        opts: Any = None,
        timeout: Timeout = None,
    ) -> Work:
        work = start(self, title, call, arguments, outputs, deadline=_limit(getattr(opts, "timeout", timeout)))
        if self._coalescing is not None:
            self._coalescing.append(work)
        return work.keep()

    def _start_coalescing(self, device: Any = None) -> None:
        """Collect the works posted until ``_end_coalescing``, to be waited for together."""
        self._coalescing = []

    def _end_coalescing(self, device: Any = None) -> Work:
        works, self._coalescing = self._coalescing or [], None
        outputs = [tensor for work in works for tensor in work._results()]
        return Work(Together([work._work for work in works]), self.deadline, outputs, order=self.order).keep()

    def _get_sequence_number_for_group(self) -> int:
        """Return the number of calls posted on the group."""
        return self.posted

    def _set_sequence_number_for_group(self) -> None:
        """Do nothing: the engine counts from the start."""

    def get_group_store(self) -> Store | None:
        """Return the group's part of the store that the ranks share; None after a split."""
        current_world = peek()
        store = None if current_world is None else current_world.store
        return None if store is None else PrefixStore(self.group_name, store)

    def _set_group_name(self, name: str) -> None:
        self._name = name

    def _set_group_desc(self, desc: str) -> None:
        self._desc = desc

    def _get_backend(self, device: torch.device) -> CollectiveGroup:
        """Return the group itself, for every device; torch 2.14's ``batch_isend_irecv`` calls this."""
        return self

    @property
    def _device_types(self) -> list[torch.device]:
        """The types of devices whose tensors it takes; ``torch.distributed.checkpoint.async_save`` requires the CPU."""
        kinds = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
        return [torch.device(kind) for kind in kinds]

    def getBackendName(self) -> str:
        """Return "collshim": under the name that the group was given, C++ would look for a gloo of its own."""
        return "collshim"


def _option(opts: Any, name: str) -> Any:
    """Return an attribute of torch's options object, or the value that was passed in place of the object."""
    return getattr(opts, name, opts)


def _limit(timeout: Timeout) -> float | None:
    """Convert a timeout to seconds; None if it is None, zero or negative, as in torch's options if none was set."""
    return timeout.total_seconds() if timeout is not None and timeout > timedelta(0) else None


def _first(tensors: Tensors) -> Tensor:
    return tensors if isinstance(tensors, Tensor) else tensors[0]


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
