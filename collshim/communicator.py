"""``Communicator``: one method per collective, the same for threads and processes, for every kind of array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from collshim import arguments as judge
from collshim.aliasing import apart
from collshim.arrays import follower
from collshim.autograd import attach
from collshim.call import Call, Shape, call_site
from collshim.coalesced import CoalescedCollectives
from collshim.errors import ArgumentTypeError, ArgumentValueError, refusal
from collshim.forks import remember
from collshim.layout import Parts, listed
from collshim.nan import NanFinder
from collshim.objects import ObjectCollectives
from collshim.options import get as current_options
from collshim.point_to_point import PointToPointCalls
from collshim.transports import Posted, Transport
from collshim.transports.plain import Express
from collshim.work import Work

A = TypeVar("A")
ReduceOp = str | tuple[str, float]


class Communicator(PointToPointCalls, ObjectCollectives, CoalescedCollectives):
    """One rank's end of an ordered group of ranks.

    Every method takes arrays of any kind (torch, NumPy, CuPy, anything with DLPack), judges its arguments before it
    sends anything, and returns a ``Work`` at once; ``Work.wait`` gives arrays of the kind that was given. Inputs must
    not change before the wait. Where there is one part per rank, the result is rank-leading: ``(size, *shape)``.
    Results that nobody gave a place for are differentiable for torch inputs that require a gradient, by the rules of
    ``collshim.autograd``; an ``out=`` is not part of the graph. Outputs in one list must not share memory.

    Attributes:
        rank: this rank in the group; roots, sources and destinations are ranks in the group too.
        size: how many ranks the group has.
        ranks: the group's ranks in the world, in the group's order.
        name: what the group is called in error texts.
        timeout: seconds that a wait may take, unless it says otherwise.

    Every method raises an ``ArgumentError`` for arguments that this rank can judge alone (nothing is sent, the rank
    may call again), and its work's ``wait`` raises a ``CommunicationError`` for what goes wrong between ranks.
    """

    def __init__(self, transport: Transport, ranks: Sequence[int], name: str, timeout: float | None = None) -> None:
        self._transport = transport
        self.rank = transport.rank
        self.size = transport.size
        self.ranks = tuple(ranks)
        self.name = name
        self.timeout = current_options().timeout if timeout is None else timeout
        self._nan = NanFinder(self)
        self._subgroups: dict[tuple[int, ...], int] = {}
        remember(self)

    def __repr__(self) -> str:
        return f"<Communicator {self.name}: rank {self.rank} of {self.size}>"

    def all_reduce(self, array: A, op: ReduceOp = "sum", *, out: A | None = None) -> Work[A]:
        """Every rank holds the element-wise reduction of all ranks' arrays, in the shape and dtype of its own.

        ``out`` may be ``array`` itself.
        """
        express = self._short_way(reduces=True)
        if express is not None and (work := express.all_reduce(self, array, op, out)) is not None:
            return work
        tensor, reduction = self._operand("all_reduce", array, op)
        target = None if out is None else judge.output_of(self, "all_reduce", out, tensor.shape, tensor)
        return self._post(self._call("all_reduce", tensor, *reduction), tensor, target, array, out)

    def reduce(self, array: A, root: int = 0, op: ReduceOp = "sum", *, out: A | None = None) -> Work[A | None]:
        """The root holds the element-wise reduction of all ranks' arrays; the others get None and keep their input."""
        tensor, reduction = self._operand("reduce", array, op)
        root = judge.rank_of(self, "reduce", "root", root)
        given = out if root == self.rank else None
        target = None if given is None else judge.output_of(self, "reduce", given, tensor.shape, tensor)
        return self._post(self._call("reduce", tensor, *reduction, root=root), tensor, target, array, given)

    def broadcast(self, array: A, root: int = 0, *, out: A | None = None, discovers: bool = False) -> Work[A]:
        """Every rank holds a copy of the root's array.

        Off the root ``array`` tells shape, dtype and kind of what is awaited and is not changed; ``out=array`` is the
        form in place. With ``discovers`` on every rank, or the check on, it may be None there.
        """
        express = self._short_way() if discovers is False else None
        if express is not None and (work := express.broadcast(self, array, root, out)) is not None:
            return work
        discovers = judge.flag_of(self, "broadcast", "discovers", discovers)
        root = judge.rank_of(self, "broadcast", "root", root)
        if array is None and root != self.rank and out is None:
            self._require_discovery("broadcast", discovers)
            return self._post(self._empty("broadcast", root=root, discovers=discovers), None, None, None, None)
        tensor = self._tensor("broadcast", out if array is None and root != self.rank else array)
        target = None if out is None else judge.output_of(self, "broadcast", out, tensor.shape, tensor)
        needs_grad = root == self.rank and _needs_grad(tensor)
        call = self._call("broadcast", tensor, root=root, discovers=discovers, needs_grad=needs_grad)
        source = tensor if root == self.rank else None
        return self._post(call, source, target, tensor if array is None else array, out, tensor.device)

    def all_gather(self, array: A, *, out: A | Sequence[A] | None = None) -> Work[A]:
        """Every rank holds all ranks' arrays, ``(size, *shape)``.

        ``out`` may be such an array, or a list of ``size`` arrays, whose shapes may be unequal where the ranks' are.
        """
        express = self._short_way()
        if express is not None and (work := express.all_gather(self, array, out)) is not None:
            return work
        tensor = self._tensor("all_gather", array)
        target, expects = self._gathered_into("all_gather", tensor, out)
        return self._post(self._call("all_gather", tensor, expects=expects), tensor, target, array, out)

    def all_gather_ragged(self, array: A) -> Work[list[A]]:
        """Every rank holds a list of all ranks' arrays, which may have unequal shapes that nobody knew before."""
        tensor = self._tensor("all_gather", array)
        call = self._call("all_gather", tensor, expects=(), discovers=True)
        return self._post(call, tensor, None, array, None)

    def gather(self, array: A, root: int = 0, *, out: A | Sequence[A] | None = None) -> Work[A | None]:
        """The root holds all ranks' arrays, ``(size, *shape)``; the others get None.

        ``out``, on the root alone, may be a list of ``size`` arrays, unequal ones with the check on.
        """
        tensor = self._tensor("gather", array)
        root = judge.rank_of(self, "gather", "root", root)
        given = out if root == self.rank else None
        target, expects = self._gathered_into("gather", tensor, given)
        if expects is not None:
            self._require_discovery("gather", False)
        return self._post(self._call("gather", tensor, root=root, expects=expects), tensor, target, array, given)

    def gather_ragged(self, array: A, root: int = 0) -> Work[list[A] | None]:
        """The root holds a list of all ranks' arrays, which may have unequal shapes; the others get None."""
        tensor = self._tensor("gather", array)
        root = judge.rank_of(self, "gather", "root", root)
        call = self._call("gather", tensor, root=root, expects=(), discovers=True)
        return self._post(call, tensor, None, array, None)

    def scatter(
        self, parts: Any, root: int = 0, *, out: A | None = None, like: A | None = None, discovers: bool = False
    ) -> Work[A]:
        """Rank r holds the root's r-th part.

        On the root ``parts`` is rank-leading, ``(size, *shape)``, or a list of ``size`` arrays, unequal ones with the
        check on or ``discovers`` on every rank. Elsewhere it is None; ``out``, or ``like`` for shape, dtype and kind,
        tells what is awaited, which neither need where the ranks tell each other.
        """
        root = judge.rank_of(self, "scatter", "root", root)
        discovers = judge.flag_of(self, "scatter", "discovers", discovers)
        if root != self.rank:
            return self._post_scattered(root, out, like, discovers)
        found = judge.parts_of(self, "scatter", parts)
        mine = found[self.rank]
        target = None if out is None else judge.output_of(self, "scatter", out, mine.shape, mine)
        call = self._parted("scatter", found, root=root, discovers=discovers)
        if call.sends is not None:
            self._require_discovery("scatter", discovers)
        return self._post(call, found, target, _first(parts), out)

    def reduce_scatter(self, parts: Any, op: ReduceOp = "sum", *, out: A | None = None) -> Work[A]:
        """Rank r holds the element-wise reduction of all ranks' r-th parts.

        ``parts`` is rank-leading, ``(size, *shape)``, or a list of ``size`` arrays, unequal ones included where all
        ranks' lists have the same shapes.
        """
        express = self._short_way(reduces=True)
        if express is not None and (work := express.reduce_scatter(self, parts, op, out)) is not None:
            return work
        found = judge.parts_of(self, "reduce_scatter", parts)
        mine = found[self.rank]
        reduction = judge.reduce_op_of(self, "reduce_scatter", op, mine.dtype)
        target = None if out is None else judge.output_of(self, "reduce_scatter", out, mine.shape, mine)
        return self._post(self._parted("reduce_scatter", found, *reduction), found, target, _first(parts), out)

    def all_to_all(
        self, parts: Any, *, out: Any = None, shapes: Sequence[Sequence[int]] | None = None, discovers: bool = False
    ) -> Work[Any]:
        """Rank r holds, in rank order, the r-th part of every rank.

        ``parts`` rank-leading, ``(size, *shape)``, gives the same form back; a list of ``size`` arrays, unequal ones
        included, gives a list. ``out`` may be either form. A list without ``out`` needs ``shapes``, one per rank, the
        check on, or ``discovers`` on every rank.
        """
        express = self._short_way() if discovers is False else None
        if express is not None and (work := express.all_to_all(self, parts, out)) is not None:
            return work
        discovers = judge.flag_of(self, "all_to_all", "discovers", discovers)
        found = judge.parts_of(self, "all_to_all", parts)
        if isinstance(found, Tensor) and not isinstance(out, list | tuple):
            return self._post_exchange(found, parts, out)
        own = listed(found)
        expects = judge.awaited_of(self, "all_to_all", shapes, out, None if self.checks else own[self.rank])
        target = None if out is None else judge.outputs_of(self, "all_to_all", out, expects, own[0])
        if not expects:
            self._require_discovery("all_to_all", discovers)
        call = self._call(
            "all_to_all",
            own[0],
            discovers=discovers or not expects,
            sends=_shapes(own),
            expects=expects,
            needs_grad=_needs_grad(found),
        )._replace(shape=None)
        return self._post(call, found, target, _first(parts), out)

    def barrier(self) -> Work[None]:
        """Its wait returns when every rank of the group has called it."""
        return self._post(self._empty("barrier"), None, None, None, None)

    def subgroup(self, ranks: Sequence[int]) -> Communicator | None:
        """A communicator over these ranks of this one, in this order; None on a rank that is not among them.

        Every member calls it, in the same order of subgroups with the same ranks; others need not.
        """
        if not isinstance(ranks, Iterable):
            text = refusal("subgroup", "rank list", repr(ranks), "a list of ranks", self.rank, self.size)
            raise ArgumentTypeError(text)
        found = tuple(judge.rank_of(self, "subgroup", "rank", rank) for rank in ranks)
        if len(set(found)) != len(found) or not found:
            got, wanted = list(found), "one or more ranks, each once"
            raise ArgumentValueError(refusal("subgroup", "rank list", got, wanted, self.rank, self.size))
        count = self._subgroups[found] = self._subgroups.get(found, 0) + 1
        key = f"{'-'.join(map(str, found))}#{count}"
        transport = self._transport.subgroup(found, key)
        if transport is None:
            return None
        return Communicator(transport, [self.ranks[rank] for rank in found], f"{self.name}/{key}", self.timeout)

    def close(self) -> None:
        """Leave the group; later calls raise ``BrokenCommunicatorError``."""
        self._transport.close()

    def announce_leaving(self, why: str) -> None:
        """Tell the other ranks that this one comes to no further call."""
        self._transport.announce_leaving(why)

    @property
    def checks(self) -> bool:
        """Whether the ranks compare their calls before data moves (``COLLSHIM_CHECK``)."""
        return self._transport.checks

    def _tensor(self, op: str, array: Any) -> Tensor:
        tensor = judge.tensor_of(self, op, array)
        judge.refuse_kind(self, op, tensor)
        return tensor

    def _operand(self, op: str, array: Any, reduce_op: ReduceOp) -> tuple[Tensor, tuple[str, float | None]]:
        tensor = self._tensor(op, array)
        return tensor, judge.reduce_op_of(self, op, reduce_op, tensor.dtype)

    def _short_way(self, reduces: bool = False) -> Express | None:
        express = self._transport.express
        if express is None or express.queue or express.unseen or (reduces and self._nan.is_on()):
            return None
        return express

    def join_graph(self, call: Call, given: Parts | None, pending: Posted, result: Any) -> Any:
        """The result of a posted call, a part of the graph where some rank needs a gradient."""
        return attach(self, call, given, pending, result)

    def _gathered_into(self, op: str, tensor: Tensor, out: Any) -> tuple[judge.Target | None, tuple[Shape, ...] | None]:
        if out is None:
            return None, None
        shape = tuple(tensor.shape)
        if not isinstance(out, list | tuple):
            return judge.outputs_of(self, op, out, [shape] * self.size, tensor), None
        target = judge.outputs_of(self, op, out, None, tensor)
        shapes = _shapes(listed(target.own))
        return target, None if all(known == shape for known in shapes) else shapes

    def _post_scattered(self, root: int, out: Any, like: Any, discovers: bool) -> Work[Any]:
        known = like if out is None else out
        if known is None:
            self._require_discovery("scatter", discovers)
            return self._post(self._empty("scatter", root=root, discovers=discovers), None, None, None, None)
        tensor = self._tensor("scatter", known)
        target = None if out is None else judge.output_of(self, "scatter", out, tensor.shape, tensor)
        call = self._call("scatter", tensor, root=root, discovers=discovers, needs_grad=False)
        return self._post(call, None, target, known, out, tensor.device)

    def _post_exchange(self, stacked: Tensor, parts: Any, out: Any) -> Work[Any]:
        target = None if out is None else judge.output_of(self, "all_to_all", out, stacked.shape, stacked)
        call = self._parted("all_to_all", stacked)
        return self._post(call, stacked, target, parts, out)

    def _require_discovery(self, op: str, discovers: bool) -> None:
        if not (discovers or self._transport.checks):
            got, wanted = "unknown to the other ranks", "known, or the check on, or discovers=True on every rank"
            raise ArgumentValueError(refusal(op, "shape of what is awaited", got, wanted, self.rank, self.size))

    def _post(
        self,
        call: Call,
        given: Parts | None,
        target: judge.Target | None,
        array: Any,
        out: Any,
        device: torch.device | None = None,
    ) -> Work[Any]:
        """Post a judged call; the work's result is ``out`` where the caller gave one."""
        if out is not None and call.needs_grad:
            call = call._replace(needs_grad=False)
        gets_array = array is not None and out is None and call.op != "send"
        kind = judge.kind_of(self, call.op, array) if gets_array else None
        inputs = None if given is None else judge.readable_parts(given)
        if call.reduce_op is not None and inputs is not None and (nan := self._nan.look(inputs)):
            call = call._replace(nan=nan)
        if target is not None and inputs is not None:
            inputs = apart(call.op, self.rank, inputs, target.written)
        place = device or _device(given)
        pending = self._transport.post(call, inputs, None if target is None else target.written, place)
        views, follows = self._views(call, given, target, pending, out), follower(array if out is None else out)
        work = Work[Any](pending, views if follows is None else (*views, follows), kind, self.timeout)
        if call.op == "send" and call.needs_grad:
            attach(self, call, given, pending, None)  # its place among the backwards is here, whenever it is waited for
            work.token = pending.token
        return work

    def _call(
        self, op: str, tensor: Tensor, reduce_op: str | None = None, factor: float | None = None, **more: Any
    ) -> Call:
        """The call of a rank that gives one tensor."""
        site = call_site() if self._transport.checks else ""
        more.setdefault("needs_grad", _needs_grad(tensor))
        return Call(op, tuple(tensor.shape), tensor.dtype, tensor.device.type, reduce_op, factor, site=site, **more)

    def _parted(
        self, op: str, parts: Parts, reduce_op: str | None = None, factor: float | None = None, **more: Any
    ) -> Call:
        """The call of a rank that gives one part per rank."""
        sends = None if isinstance(parts, Tensor) or _equal(parts) else _shapes(parts)
        call = self._call(op, parts[0], reduce_op, factor, sends=sends, needs_grad=_needs_grad(parts), **more)
        return call if sends is None else call._replace(shape=None)

    def _empty(self, op: str, **more: Any) -> Call:
        """The call of a rank that gives nothing."""
        return Call(op, site=call_site() if self._transport.checks else "", **more)

    def _views(
        self, call: Call, given: Parts | None, target: judge.Target | None, pending: Posted, out: Any
    ) -> tuple[Callable[[Any], Any], ...]:
        if target is not None:
            return (partial(_settled_into, target, out),)
        if call.op in ("barrier", "send") or not (call.needs_grad or self._transport.checks):
            return ()
        return (partial(self.join_graph, call, given, pending),)


def _needs_grad(parts: Parts) -> bool:
    if not torch.is_grad_enabled():
        return False
    return parts.requires_grad if isinstance(parts, Tensor) else any(part.requires_grad for part in parts)


def _equal(parts: Sequence[Tensor]) -> bool:
    return all(part.shape == parts[0].shape for part in parts)


def _shapes(parts: Sequence[Tensor]) -> tuple[Shape, ...]:
    return tuple(tuple(part.shape) for part in parts)


def _first(parts: Any) -> Any:
    return parts[0] if isinstance(parts, list | tuple) else parts


def _device(given: Parts | None) -> torch.device:
    return torch.device("cpu") if given is None else given.device if isinstance(given, Tensor) else given[0].device


def _settled_into(target: judge.Target, out: Any, result: Any) -> Any:
    target.settle()
    return out
