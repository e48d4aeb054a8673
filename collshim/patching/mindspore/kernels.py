"""The kernels of MindSpore's functions: ``InnerComm...`` return results, ``DistComm...`` write in place.

The latter have no gradients.

Each takes the arguments of the class of its name in ``mindspore.ops.auto_generate``. It returns the result, or
``(result, handle)`` if the caller asks for a handle or may wait for one. Ranks are ranks in the group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from collshim.communicator import Communicator
from collshim.errors import ArgumentError, also
from collshim.messages import Recv, Send
from collshim.patching.mindspore.functional import Functional
from collshim.patching.mindspore.gradients import Posted
from collshim.patching.mindspore.pending import Handle
from collshim.patching.replacing import Foreign
from collshim.work import Work

_SEND = 0
"""The number of "isend" in ``DistCommBatchIsendIrecv``; "irecv" is 1."""


class Kernels:
    """The methods are the kernels, as the table names them."""

    def __init__(self, functional: Functional) -> None:
        self._functional, self._tensors = functional, functional.tensors

    def inner_all_reduce(self, x: Foreign, op: str, group: str, async_op: bool = True) -> Foreign:
        """Return the reduction of all ranks' tensors."""
        return self._result(self._functional.all_reduce(x, op, group), async_op)

    def inner_all_gather(self, x: Foreign, size: int, group: str, async_op: bool = True) -> Foreign:
        """Return all ranks' tensors, concatenated."""
        return self._result(self._functional.all_gather(x, group), async_op)

    def inner_reduce_scatter(self, x: Foreign, size: int, op: str, group: str, async_op: bool = True) -> Foreign:
        """Return this rank's part of the reduction."""
        return self._result(self._functional.reduce_scatter(x, op, group), async_op)

    def inner_all_to_all_v(
        self, x: Foreign, group: str, sends: Foreign, recvs: Foreign, size: int, even: bool, async_op: bool = True
    ) -> Foreign:
        """Return the elements that all ranks send to this one, flattened."""
        posted = self._functional.all_to_all_v(x, list(sends), list(recvs), group)
        return self._result(posted, async_op)

    def inner_isend(self, x: Foreign, dst: int, group: str, tag: int) -> Foreign:
        """Send the tensor, and return it."""
        comm = self._comm(group)
        self._tensors.require("isend", x, comm.rank, comm.size)
        return x, Handle([comm.send(self._tensors.read(x), dst, tag)], [])

    def inner_irecv(self, tag: int, src: int, shape: Foreign, group: str, dtype: Foreign) -> Foreign:
        """Return the received tensor."""
        out = self._tensors.empty(shape, dtype)
        work = self._comm(group).recv(src, out=out, tag=tag)
        return self._tensors.make(out), self._tensors.pending.add(Handle([work], [out]))

    def dist_all_reduce(self, x: Foreign, op: str, group: str, async_op: bool = True) -> Foreign:
        """Reduce all ranks' ``x`` in place, on every rank."""
        comm = self._comm(group)
        return self._write(lambda own: comm.all_reduce(own, op, out=own), x, async_op)

    def dist_reduce(self, x: Foreign, op: str, dst: int, group: str, async_op: bool = True) -> Foreign:
        """Reduce all ranks' ``x`` in place on ``dst``, which in this function alone is a global rank."""
        comm = self._comm(group)
        if dst not in comm.ranks:
            text = f"Group {group} doesn't contain the global rank {dst}"
            raise also(ArgumentError, RuntimeError)(f"{text} (rank {comm.rank} of {comm.size})")
        root = list(comm.ranks).index(dst)
        out = comm.rank == root
        return self._write(lambda own: comm.reduce(own, root, op, out=own if out else None), x, async_op)

    def dist_broadcast(self, x: Foreign, src: int, rank: int, group: str, async_op: bool = True) -> Foreign:
        """Copy the values of ``x`` on ``src`` into every rank's ``x``."""
        comm = self._comm(group)
        return self._write(lambda own: comm.broadcast(own, src, out=own), x, async_op)

    def dist_all_gather(self, outs: Foreign, x: Foreign, size: int, group: str, async_op: bool = True) -> Foreign:
        """Gather all ranks' tensors into ``outs``."""
        comm, own = self._comm(group), self._tensors.read(x)
        return self._write_all(lambda targets: comm.all_gather(own, out=targets), outs, async_op)

    def dist_all_gather_into_tensor(
        self, out: Foreign, x: Foreign, size: int, group: str, async_op: bool = True
    ) -> Foreign:
        """Gather all ranks' tensors, concatenated, into ``out``."""
        comm, own = self._comm(group), self._tensors.read(x)

        def post(target: Tensor) -> Work[Foreign]:
            _require_output(comm, "DistCommAllGatherIntoTensor", target, own, _joined(own, comm.size))
            return comm.all_gather(own, out=target.view(comm.size, *own.shape))

        return self._write(post, out, async_op)

    def dist_all_gather_into_tensor_uneven(
        self, out: Foreign, x: Foreign, sizes: Foreign, size: int, group: str, async_op: bool = True
    ) -> Foreign:
        """Gather all ranks' tensors, which have ``sizes`` rows, concatenated, into ``out``."""
        comm, own = self._comm(group), self._tensors.read(x)

        def post(target: Tensor) -> Work[Foreign]:
            _require_output(comm, "DistCommAllGatherIntoTensorUneven", target, own)
            return comm.all_gather(own, out=_rows(comm, target, sizes))

        return self._write(post, out, async_op)

    def dist_reduce_scatter(
        self, out: Foreign, parts: Foreign, size: int, op: str, group: str, async_op: bool = True
    ) -> Foreign:
        """Reduce all ranks' ``parts``, and write this rank's part of the result to ``out``."""
        comm, own = self._comm(group), [self._tensors.read(part) for part in parts]
        return self._write(lambda target: comm.reduce_scatter(own, op, out=target), out, async_op)

    def dist_reduce_scatter_tensor(
        self, out: Foreign, x: Foreign, size: int, op: str, group: str, async_op: bool = True
    ) -> Foreign:
        """Reduce all ranks' ``x``, and write this rank's part to ``out``."""
        comm, own = self._comm(group), self._tensors.read(x)

        def post(target: Tensor) -> Work[Foreign]:
            _require_output(comm, "DistCommReduceScatterTensor", target, own, _part(own, comm.size))
            return comm.reduce_scatter(own.reshape(comm.size, *target.shape), op, out=target)

        return self._write(post, out, async_op)

    def dist_reduce_scatter_tensor_uneven(
        self, out: Foreign, x: Foreign, sizes: Foreign, size: int, op: str, group: str, async_op: bool = True
    ) -> Foreign:
        """Reduce all ranks' ``x``, and write this rank's rows to ``out``; ``sizes`` are all ranks' numbers of rows."""
        comm, own = self._comm(group), self._tensors.read(x)
        parts = _rows(comm, own, sizes)

        def post(target: Tensor) -> Work[Foreign]:
            _require_output(comm, "DistCommReduceScatterTensorUneven", target, own)
            return comm.reduce_scatter(parts, op, out=target)

        return self._write(post, out, async_op)

    def dist_scatter(
        self, out: Foreign, parts: Foreign, size: int, src: int, rank: int, group: str, async_op: bool = True
    ) -> Foreign:
        """Write this rank's tensor of the list on ``src`` to ``out``."""
        comm = self._comm(group)
        own = [self._tensors.read(part) for part in parts] if comm.rank == src else None
        return self._write(lambda target: comm.scatter(own, src, out=target), out, async_op)

    def dist_scatter_tensor(
        self, out: Foreign, x: Foreign, size: int, src: int, rank: int, group: str, async_op: bool = True
    ) -> Foreign:
        """Write this rank's part of the tensor on ``src`` to ``out``."""
        comm, own = self._comm(group), self._tensors.read(x)

        def post(target: Tensor) -> Work[Foreign]:
            is_root = comm.rank == src
            shape = _part(own, comm.size) if is_root else None
            _require_output(comm, "DistCommScatterTensor", target, own, shape)
            if not is_root:
                return comm.scatter(None, src, out=target)
            return comm.scatter(own.reshape(comm.size, *target.shape), src, out=target)

        return self._write(post, out, async_op)

    def dist_gather(
        self, x: Foreign, outs: Foreign, size: int, dst: int, rank: int, group: str, async_op: bool = True
    ) -> Foreign:
        """Gather all ranks' tensors into ``outs`` on ``dst``."""
        comm, own = self._comm(group), self._tensors.read(x)
        if comm.rank != dst:
            return self._finish(outs, comm.gather(own, dst), [], [], async_op)
        return self._write_all(lambda targets: comm.gather(own, dst, out=targets), outs, async_op)

    def dist_gather_into_tensor(
        self, out: Foreign, x: Foreign, size: int, dst: int, rank: int, group: str, async_op: bool = True
    ) -> Foreign:
        """Gather all ranks' tensors, concatenated, into ``out`` on ``dst``."""
        comm, own = self._comm(group), self._tensors.read(x)
        shape = _joined(own, comm.size) if comm.rank == dst else None
        _require_output(comm, "DistCommGatherIntoTensor", self._tensors.read(out), own, shape)
        if comm.rank != dst:
            return self._finish(out, comm.gather(own, dst), [], [], async_op)

        def post(target: Tensor) -> Work[Foreign]:
            return comm.gather(own, dst, out=target.view(comm.size, *own.shape))

        return self._write(post, out, async_op)

    def dist_all_to_all_v(
        self, outs: Foreign, x: Foreign, group: str, sends: Foreign, recvs: Foreign, size: int, async_op: bool = True
    ) -> Foreign:
        """Write the elements that each rank sends to this one into the tensors ``outs``."""
        comm, own = self._comm(group), self._tensors.read(x)
        parts = list(own.split(list(sends)))

        def post(targets: list[Tensor]) -> Work[Foreign]:
            for target in targets:
                _require_output(comm, "DistCommAllToAllV", target, own)
            return comm.all_to_all(parts, out=[target.view(-1) for target in targets[: comm.size]])

        return self._write_all(post, outs, async_op)

    def dist_all_to_all_v_single(
        self,
        out: Foreign,
        x: Foreign,
        group: str,
        sends: Foreign,
        recvs: Foreign,
        size: int,
        even: bool,
        async_op: bool = True,
    ) -> Foreign:
        """Write the elements that all ranks send to this one, concatenated, into ``out``."""
        comm, own = self._comm(group), self._tensors.read(x)
        parts = list(own.split(list(sends)))

        def post(target: Tensor) -> Work[Foreign]:
            _require_output(comm, "DistCommAllToAllVSingle", target, own)
            _require_count(comm, "all_to_all_single", "output", target, sum(recvs))
            return comm.all_to_all(parts, out=list(target.view(-1).split(list(recvs))))

        return self._write(post, out, async_op)

    def dist_all_to_all_v_c(
        self, out: Foreign, x: Foreign, group: str, matrix: Foreign, size: int, rank: int, async_op: bool = True
    ) -> Foreign:
        """Do the same with the counts of all ranks: rank i sends ``matrix[i * size + j]`` elements to rank j."""
        counts, own = list(matrix), self._comm(group).rank
        sends, recvs = counts[own * size : (own + 1) * size], counts[own::size]
        return self.dist_all_to_all_v_single(out, x, group, sends, recvs, size, False, async_op)

    def dist_barrier(self, group: str, async_op: bool = True) -> Foreign:
        """Wait until every rank has called this."""
        return self._finish(None, self._comm(group).barrier(), [], [], async_op)

    def dist_isend(self, x: Foreign, dst: int, group: str, tag: int) -> Foreign:
        """Do the same as ``inner_isend``."""
        return self.inner_isend(x, dst, group, tag)

    def dist_irecv(self, x: Foreign, tag: int, src: int, group: str) -> Foreign:
        """Receive into ``x``."""
        comm = self._comm(group)
        return self._write(lambda own: comm.recv(src, out=own, tag=tag), x, True)

    def dist_batch(self, xs: Foreign, group: str, ops: Sequence[int], ranks: Sequence[int]) -> Foreign:
        """Send each tensor, or receive into it, according to ``ops``."""
        comm, messages = self._comm(group), list[Send | Recv]()
        targets, endings = list[Tensor](), list[Callable[[], None]]()
        for x, op, rank in zip(xs, ops, ranks, strict=True):
            if op == _SEND:
                messages.append(Send(self._tensors.read(x), rank))
                continue
            own, ending = self._tensors.target(x)
            messages.append(Recv(rank, own))
            targets.append(own)
            endings.append(ending)
        return tuple(xs), self._tensors.pending.add(Handle(comm.batch(messages), targets, endings))

    def _comm(self, group: str) -> Communicator:
        return self._functional.groups.communicator(group)

    def _result(self, posted: Posted, async_op: bool) -> Foreign:
        if not async_op:
            return posted.wait()
        targets = [self._tensors.read(output) for output in posted.outputs]
        return posted.outputs[0], self._tensors.pending.add(Handle([posted.work], targets))

    def _write(self, post: Callable[[Tensor], Work[Foreign]], x: Foreign, async_op: bool) -> Foreign:
        target, ending = self._tensors.target(x)
        return self._finish(x, post(target), [target], [ending], async_op)

    def _write_all(self, post: Callable[[list[Tensor]], Work[Foreign]], xs: Foreign, async_op: bool) -> Foreign:
        pairs = [self._tensors.target(x) for x in xs]
        targets, endings = [target for target, _ in pairs], [ending for _, ending in pairs]
        return self._finish(xs, post(targets), targets, endings, async_op)

    def _finish(
        self,
        result: Foreign,
        work: Work[Foreign],
        targets: Sequence[Tensor],
        endings: Sequence[Callable[[], None]],
        async_op: bool,
    ) -> Foreign:
        handle = Handle([work], targets, endings)
        if async_op:
            return result, self._tensors.pending.add(handle)
        handle.wait()
        return result


def _require_count(comm: Communicator, function: str, what: str, tensor: Tensor, count: int) -> None:
    if tensor.numel() != count:
        text = f"{function}: the {what} has {tensor.numel()} elements, should have {count}"
        raise also(ArgumentError, ValueError)(f"{text} (rank {comm.rank} of {comm.size})")


def _require_output(
    comm: Communicator, primitive: str, out: Tensor, own: Tensor, shape: tuple[int, ...] | None = None
) -> None:
    """Refuse an output with a wrong dtype or shape, as MindSpore does before its kernels run."""
    text = ""
    if out.dtype != own.dtype:
        kinds = [str(tensor.dtype).removeprefix("torch.") for tensor in (out, own)]
        text = f"type {kinds[0]} must be equal to input_tensor type {kinds[1]}"
    elif shape is not None and tuple(out.shape) != shape:
        text = f"shape must be equal to {shape}, but got {tuple(out.shape)}"
    if text:
        place = f"(rank {comm.rank} of {comm.size})"
        raise also(ArgumentError, ValueError)(f"For {primitive!r}, output_tensor {text} {place}")


def _joined(own: Tensor, size: int) -> tuple[int, ...]:
    """Return the shape of all ranks' tensors concatenated."""
    return (own.shape[0] * size, *own.shape[1:]) if own.dim() else (size,)


def _part(own: Tensor, size: int) -> tuple[int, ...]:
    """Return the shape of one rank's part of a tensor, if the number of ranks divides it."""
    return (own.shape[0] // size, *own.shape[1:]) if own.dim() and own.shape[0] % size == 0 else ()


def _rows(comm: Communicator, whole: Tensor, sizes: Foreign) -> list[Tensor]:
    """Split a tensor's rows: ``sizes[r]`` rows for rank r, or equally if ``sizes`` is empty."""
    counts = list(sizes) or [whole.shape[0] // comm.size] * comm.size
    if len(counts) != comm.size or sum(counts) != whole.shape[0]:
        text = f"the split sizes are {counts}, should be {comm.size} that add up to {whole.shape[0]} rows"
        raise also(ArgumentError, ValueError)(f"{text} (rank {comm.rank} of {comm.size})")
    return list(torch.split(whole, counts))
