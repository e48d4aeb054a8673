"""``Communicator``: one method per collective, the same for threads and processes, for every kind of array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

from torch import Tensor

from collshim.arrays import Array, Arrays
from collshim.arrays.arithmetic import ReduceOp
from collshim.autograd import attach
from collshim.calls import collective, validation
from collshim.calls.call import Call
from collshim.calls.collective import Shape
from collshim.calls.plan import RAGGED
from collshim.calls.validation import Shapes, Target
from collshim.coalesced import CoalescedCollectives
from collshim.errors import ArgumentValueError
from collshim.layout import Parts, are_equal, listed, needs_grad, shapes_of
from collshim.lifetime import Lifetime
from collshim.messages import Messages
from collshim.objects import ObjectCollectives
from collshim.transports import compares
from collshim.work import Work

A = TypeVar("A")


class Communicator(Messages, ObjectCollectives, CoalescedCollectives, Lifetime):
    """One rank's end of an ordered group of ranks.

    Every method takes any kind of array (torch, NumPy, CuPy, anything that supports DLPack), validates its arguments
    before it sends anything, and returns a ``Work`` immediately. ``Work.wait`` returns arrays of the same kind as the
    input. The input must not change before the wait. A result with one part per rank is rank-leading: its shape is
    ``(size, *shape)``. If ``out`` is one array, its parts may also lie end to end along axis 0, ``(size * n, ...)`` for
    parts of ``(n, ...)``. The same holds for the input of reduce_scatter and all_to_all.

    Without ``out``, a result is differentiable if the input is a torch tensor that requires a gradient;
    ``collshim.autograd`` has the rules. ``out`` is not part of the graph. Outputs in one list must not share memory.

    Every method raises an ``ArgumentError`` if this rank can tell by itself that an argument is invalid. Nothing has
    been sent then, and the rank may call again. ``Work.wait`` raises a ``CommunicationError`` if something goes wrong
    between ranks.

    In the examples, ``ranks(fn)`` calls ``fn(comm)`` on two ranks, each with its communicator, and returns their
    results in rank order.

    Attributes:
        rank: this rank in the group. Roots, sources and destinations are ranks in the group too.
        size: the number of ranks in the group.
        checks: whether the ranks compare their calls before data moves (``COLLSHIM_CHECK``).
        ranks: the ranks of the group's members in the world, in the group's order.
        name: the group's name in error texts.
        timeout: the default for how many seconds a wait may take.
    """

    def __repr__(self) -> str:
        return f"<Communicator {self.name}: rank {self.rank} of {self.size}>"

    def all_reduce(self, array: A, op: ReduceOp = "sum", *, out: A | None = None) -> Work[A]:
        """Reduce all ranks' arrays elementwise; every rank receives the result, in its own array's shape and dtype.

        Args:
            array: an array with the same dtype on every rank, and the same shape except for dimensions of length 1.
            op: "sum", "avg", "prod", "min", "max", "band", "bor", "bxor", or ``("premul_sum", factor)``.
            out: the array that the result is written to; may be ``array`` itself.

        Examples:
            >>> ranks(lambda comm: comm.all_reduce(np.array([1, 10]) * (comm.rank + 1)).wait())
            [array([ 3, 30]), array([ 3, 30])]
        """
        if (work := self.repeat(collective.ALL_REDUCE, array, out, op)) is not None:
            return work
        tensor = self._tensor("all_reduce", array)
        reduction = validation.reduce_op_of(self, "all_reduce", op, tensor.dtype)
        target = None
        if out is not None:
            target = validation.output_of(self, "all_reduce", out, tensor.shape, tensor, may_overlap=out is array)
        return self._post(self._call(collective.ALL_REDUCE, tensor, *reduction), tensor, target, array, out)

    def reduce(self, array: A, root: int = 0, op: ReduceOp = "sum", *, out: A | None = None) -> Work[A | None]:
        """Reduce all ranks' arrays elementwise; the root receives the result, the other ranks None.

        The other ranks' arrays do not change.

        Examples:
            >>> ranks(lambda comm: comm.reduce(np.array([1, 10]), root=1).wait())
            [None, array([ 2, 20])]
        """
        if (work := self.repeat(collective.REDUCE, array, out, op, root)) is not None:
            return work
        tensor = self._tensor("reduce", array)
        reduction = validation.reduce_op_of(self, "reduce", op, tensor.dtype)
        root = validation.rank_of(self, "reduce", "root", root)
        out = out if root == self.rank else None
        target = None if out is None else validation.output_of(self, "reduce", out, tensor.shape, tensor)
        return self._post(self._call(collective.REDUCE, tensor, *reduction, root=root), tensor, target, array, out)

    def broadcast(self, array: A, root: int = 0, *, out: A | None = None, discovers: bool = False) -> Work[A]:
        """Send the root's array to every rank.

        On the other ranks, ``array`` has the shape, dtype and kind of the result, and does not change unless it is also
        ``out``. On these ranks it may be None if the check is on, or if every rank passes ``discovers=True``.

        Examples:
            >>> ranks(lambda comm: comm.broadcast(np.full(2, comm.rank), root=1).wait())
            [array([1, 1]), array([1, 1])]
        """
        if discovers is False and (work := self.repeat(collective.BROADCAST, array, out, None, root)) is not None:
            return work
        discovers = validation.flag_of(self, "broadcast", "discovers", discovers)
        root = validation.rank_of(self, "broadcast", "root", root)
        if array is None and root != self.rank and out is None:
            self._require_discovery("broadcast", discovers)
            return self._post(Call(collective.BROADCAST, root=root, discovers=discovers), None, None, None, None)
        tensor = self._tensor("broadcast", out if array is None and root != self.rank else array)
        target = None if out is None else validation.output_of(self, "broadcast", out, tensor.shape, tensor)
        graph = needs_grad(tensor) and (root == self.rank or not compares(self._transport, tensor))
        call = self._call(collective.BROADCAST, tensor, root=root, discovers=discovers, needs_grad=graph)
        source = tensor if root == self.rank else None
        return self._post(call, source, target, tensor if array is None else array, out, tensor.device)

    def all_gather(self, array: A, *, out: A | Sequence[A] | None = None) -> Work[A]:
        """Gather all ranks' arrays on every rank, as one array ``(size, *shape)``.

        ``out`` may be such an array, or a list of ``size`` arrays, which may have different shapes if the ranks' arrays
        do.

        Examples:
            >>> ranks(lambda comm: comm.all_gather(np.array([comm.rank, 7])).wait())[0]
            array([[0, 7],
                   [1, 7]])
        """
        if (work := self.repeat(collective.ALL_GATHER, array, out)) is not None:
            return work
        tensor = self._tensor("all_gather", array)
        target, expects = self._gathered_into("all_gather", tensor, out)
        return self._post(self._call(collective.ALL_GATHER, tensor, expects=expects), tensor, target, array, out)

    def all_gather_ragged(self, array: A) -> Work[list[A]]:
        """Gather all ranks' arrays on every rank, as a list; their shapes may differ, and need not be known in advance.

        Examples:
            >>> ranks(lambda comm: comm.all_gather_ragged(np.zeros(comm.rank + 1)).wait())[0]
            [array([0.]), array([0., 0.])]
        """
        if (work := self.repeat_by_plan(collective.ALL_GATHER, array, None, RAGGED)) is not None:
            return cast("Work[list[A]]", work)
        tensor = self._tensor("all_gather", array)
        call = self._call(collective.ALL_GATHER, tensor, expects=(), discovers=True)
        return self._post(call, tensor, None, array, None)

    def gather(self, array: A, root: int = 0, *, out: A | Sequence[A] | None = None) -> Work[A | None]:
        """Gather all ranks' arrays on the root, as one array ``(size, *shape)``; the other ranks receive None.

        On the root, ``out`` may be a list of ``size`` arrays, which may have different shapes if the check is on.

        Examples:
            >>> ranks(lambda comm: comm.gather(np.array([comm.rank])).wait())
            [array([[0],
                   [1]]), None]
        """
        if (work := self.repeat(collective.GATHER, array, out, None, root)) is not None:
            return work
        tensor = self._tensor("gather", array)
        root = validation.rank_of(self, "gather", "root", root)
        out = out if root == self.rank else None
        target, expects = self._gathered_into("gather", tensor, out)
        if expects is not None:
            self._require_discovery("gather", False, tensor)
        return self._post(self._call(collective.GATHER, tensor, root=root, expects=expects), tensor, target, array, out)

    def gather_ragged(self, array: A, root: int = 0) -> Work[list[A] | None]:
        """Gather all ranks' arrays on the root, as a list; their shapes may differ. The other ranks receive None.

        Examples:
            >>> ranks(lambda comm: comm.gather_ragged(np.zeros(comm.rank + 1)).wait())
            [[array([0.]), array([0., 0.])], None]
        """
        if (work := self.repeat_by_plan(collective.GATHER, array, None, RAGGED, root)) is not None:
            return work
        tensor = self._tensor("gather", array)
        root = validation.rank_of(self, "gather", "root", root)
        call = self._call(collective.GATHER, tensor, root=root, expects=(), discovers=True)
        return self._post(call, tensor, None, array, None)

    def scatter(
        self,
        parts: Arrays | None,
        root: int = 0,
        *,
        out: A | None = None,
        like: A | None = None,
        discovers: bool = False,
    ) -> Work[A]:
        """Send the root's r-th part to rank r.

        On the root, ``parts`` is a rank-leading array ``(size, *shape)``, or a list of ``size`` arrays, which may have
        different shapes if the check is on, or if every rank passes ``discovers=True``. On the other ranks ``parts`` is
        None, and ``out`` or ``like`` has the shape, dtype and kind of the result. If the check is on, or with
        ``discovers``, neither is needed; the result is a torch tensor then.

        Examples:
            >>> parts = np.array([[1, 2], [3, 4]])
            >>> ranks(lambda comm: comm.scatter(parts if comm.rank == 0 else None, like=parts[0]).wait())
            [array([1, 2]), array([3, 4])]
        """
        awaits = parts is None and type(root) is int and root != self.rank
        known = out if awaits else parts
        recalls = like is None and discovers is False
        if recalls and (work := self.repeat(collective.SCATTER, known, out, None, root)) is not None:
            return work
        root = validation.rank_of(self, "scatter", "root", root)
        discovers = validation.flag_of(self, "scatter", "discovers", discovers)
        if root != self.rank:
            return self._post_scattered(root, out, like, discovers)
        tensors = validation.parts_of(self, "scatter", parts)
        own = tensors[self.rank]
        target = None if out is None else validation.output_of(self, "scatter", out, own.shape, own)
        call = self._parted_call(collective.SCATTER, tensors, root=root, discovers=discovers)
        if call.sends is not None:
            self._require_discovery("scatter", discovers, own)
        return self._post(call, tensors, target, _first(parts), out)

    def reduce_scatter(self, parts: Arrays | None, op: ReduceOp = "sum", *, out: A | None = None) -> Work[A]:
        """Reduce all ranks' r-th parts elementwise; rank r receives the result.

        ``parts`` is a rank-leading array ``(size, *shape)``, or a list of ``size`` arrays, which may have different
        shapes if these are the same in all ranks' lists.

        Examples:
            >>> ranks(lambda comm: comm.reduce_scatter(np.array([[1, 2], [3, 4]])).wait())
            [array([2, 4]), array([6, 8])]
        """
        if (work := self.repeat(collective.REDUCE_SCATTER, parts, out, op)) is not None:
            return work
        tensors = validation.parts_of(self, "reduce_scatter", parts, joined=out is not None)
        own = tensors[self.rank]
        reduction = validation.reduce_op_of(self, "reduce_scatter", op, own.dtype)
        target = None if out is None else validation.output_of(self, "reduce_scatter", out, own.shape, own)
        call = self._parted_call(collective.REDUCE_SCATTER, tensors, *reduction)
        return self._post(call, tensors, target, _first(parts), out)

    def all_to_all(
        self,
        parts: Arrays | None,
        *,
        out: Arrays | None = None,
        shapes: Sequence[Sequence[int]] | None = None,
        splits: tuple[Sequence[int], Sequence[int]] | None = None,
        discovers: bool = False,
    ) -> Work[Arrays]:
        """Send the r-th part of every rank to rank r, which receives the parts in rank order.

        If ``parts`` is a rank-leading array ``(size, *shape)``, so is the result. If ``parts`` is a list of ``size``
        arrays, which may have different shapes, the result is a list. ``out`` may have either form.

        If the arrays of a list have different shapes and there is no ``out``, pass ``shapes``, one per rank, or
        ``discovers=True`` on every rank, or leave the check on. If the check is off and none of these is passed, a list
        of arrays of one shape means, as a rank-leading array does, that the parts have this shape on all ranks.

        ``splits`` has the lengths along axis 0 of the parts in ``parts`` and of the parts in ``out``. With it, both are
        one array whose parts lie end to end, as in MPI_Alltoallv.

        Examples:
            >>> ranks(lambda comm: comm.all_to_all(np.array([1, 2]) * (comm.rank + 1)).wait())
            [array([1, 2]), array([2, 4])]
        """
        recalls = discovers is False and shapes is None
        if recalls and (work := self.repeat(collective.ALL_TO_ALL, parts, out, splits)) is not None:
            return work
        discovers = validation.flag_of(self, "all_to_all", "discovers", discovers)
        if splits is not None:
            return self._post_split(parts, out, splits, shapes, discovers)
        tensors = validation.parts_of(self, "all_to_all", parts, joined=not isinstance(out, list | tuple | None))
        if isinstance(tensors, Tensor) and not isinstance(out, list | tuple):
            part = tuple(tensors.shape[1:])
            target = None if out is None else validation.outputs_of(self, "all_to_all", out, [part], tensors)
            return self._post(self._parted_call(collective.ALL_TO_ALL, tensors), tensors, target, parts, out)
        own = listed(tensors)
        known = None if compares(self._transport, own[0]) else own[self.rank]
        expects = validation.awaited_of(self, "all_to_all", shapes, out, known)
        if not (expects or discovers or known is None) and are_equal(own):
            expects = shapes_of(own)
        target = None if out is None else validation.outputs_of(self, "all_to_all", out, expects, own[0])
        if not expects:
            self._require_discovery("all_to_all", discovers, own[0])
        sends, discovers = shapes_of(own), discovers or not expects
        graph = needs_grad(tensors)
        call = self._call(
            collective.ALL_TO_ALL, own[0], discovers=discovers, sends=sends, expects=expects, needs_grad=graph
        )
        return self._post(call._replace(shape=None), tensors, target, _first(parts), out)

    def barrier(self) -> Work[None]:
        """Wait for all ranks: the wait returns once every rank of the group has called ``barrier``.

        Examples:
            >>> ranks(lambda comm: comm.barrier().wait())
            [None, None]
        """
        return self.post_barrier(waits=False)

    def _join(self, work: Work[Arrays], result: Arrays, parts: Parts | None = None) -> Arrays:
        return attach(self, work, parts, result)

    def _gathered_into(
        self, op: str, tensor: Tensor, out: Arrays | None
    ) -> tuple[Target | None, tuple[Shape, ...] | None]:
        if out is None:
            return None, None
        shape = tuple(tensor.shape)
        if not isinstance(out, list | tuple):
            return validation.outputs_of(self, op, out, [shape] * self.size, tensor), None
        target = validation.outputs_of(self, op, out, None, tensor)
        shapes = shapes_of(listed(target.own))
        return target, None if all(known == shape for known in shapes) else shapes

    def _post_scattered(self, root: int, out: Array | None, like: Array | None, discovers: bool) -> Work[Arrays]:
        """Post a scatter on a rank that is not the root."""
        known = like if out is None else out
        if known is None:
            self._require_discovery("scatter", discovers)
            return self._post(Call(collective.SCATTER, root=root, discovers=discovers), None, None, None, None)
        tensor = self._tensor("scatter", known)
        target = None if out is None else validation.output_of(self, "scatter", out, tensor.shape, tensor)
        graph = needs_grad(tensor) and not compares(self._transport, tensor)
        call = self._call(collective.SCATTER, tensor, root=root, discovers=discovers, needs_grad=graph)
        return self._post(call, None, target, known, out, tensor.device)

    def _post_split(
        self, parts: Array, out: Array, splits: Shapes, shapes: Shapes | None, discovers: bool
    ) -> Work[Arrays]:
        """Post an all_to_all of two arrays that are cut along axis 0."""
        op = "all_to_all"
        if shapes is not None or discovers:
            text = validation.error_text(self, op, "splits", "passed with shapes or discovers", "passed alone")
            raise ArgumentValueError(text)
        lengths = validation.splits_of(self, op, splits)
        tensor, whole = self._tensor(op, parts), validation.own_memory_of(self, op, out)
        sends = validation.cut_of(self, op, tensor, lengths[0], "input")
        places = validation.cut_of(self, op, whole, lengths[1], "output")
        expects = shapes_of(places)
        if not compares(self._transport, tensor):
            validation.awaited_of(self, op, expects, None, sends[self.rank])
        target = validation.outputs_of(self, op, places, expects, tensor)
        call = self._call(collective.ALL_TO_ALL, tensor, sends=shapes_of(sends), expects=expects, needs_grad=False)
        key = (collective.ALL_TO_ALL, lengths, None, tensor.dtype, tensor.shape)
        return self._post(call._replace(shape=None), sends, target, parts, out, key=key, shape=tuple(whole.shape))


def _first(parts: Arrays) -> Array:
    return parts[0] if isinstance(parts, list | tuple) else parts
