"""Several arrays in one call: they are laid behind each other, one collective per dtype and device moves them.

The ranks compare how many arrays they gave and their shapes, as for any other call. Where one collective fails the
others are posted, and waited for, all the same: the ranks stay in step.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from torch import Tensor

from collshim import arguments as judge
from collshim.arrays import follower
from collshim.call import Shape
from collshim.errors import ArgumentTypeError, ArgumentValueError, refusal
from collshim.work import Work, together

if TYPE_CHECKING:
    from collshim.communicator import Communicator, ReduceOp

_SHOWN = 120
"""Characters of the list of shapes that an error text shows; a checksum stands for the rest."""

Pieces = Callable[[Tensor, list[Shape]], list[Tensor]]


class _Bucket(NamedTuple):
    """The arrays of one dtype and device, and their places among all of them."""

    places: list[int]
    tensors: list[Tensor]

    def content(self, of: int) -> str:
        """What ranks compare of them; ``of`` is the number of all arrays of the call."""
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in self.tensors)
        shown = shapes if len(shapes) <= _SHOWN else f"{shapes[:_SHOWN]}... {zlib.crc32(shapes.encode()):08x}"
        count = str(of) if len(self.tensors) == of else f"{len(self.tensors)} of {of}"
        return f"coalesced of {count}: {shown}"


class CoalescedCollectives:
    """The forms of ``Communicator``'s methods for lists of arrays, equal in number and shapes on all ranks.

    Arrays may be of any kinds and dtypes; each result is of its array's kind. Results that nobody gave a place for
    are differentiable as those of the plain form are. ``out`` is one array per result.
    """

    def all_reduce_coalesced(
        self, arrays: Sequence[Any], op: ReduceOp = "sum", *, out: Sequence[Any] | None = None
    ) -> Work[list[Any]]:
        """Every rank holds each array's element-wise reduction; ``out`` may be ``arrays`` itself."""
        return _Asked(self, "all_reduce", arrays, out, op=op).post(_flat, _pieces)

    def broadcast_coalesced(
        self, arrays: Sequence[Any], root: int = 0, *, out: Sequence[Any] | None = None
    ) -> Work[list[Any]]:
        """Every rank holds copies of the root's arrays; ``out`` may be ``arrays`` itself."""
        return _Asked(self, "broadcast", arrays, out, root=root).post(_flat, _pieces)

    def all_gather_coalesced(self, arrays: Sequence[Any], *, out: Sequence[Any] | None = None) -> Work[list[Any]]:
        """Every rank holds, for each array, all ranks' ones: ``(size, *shape)``."""
        return _Asked(self, "all_gather", arrays, out).post(_flat, _columns)

    def reduce_scatter_coalesced(
        self, parts: Sequence[Any], op: ReduceOp = "sum", *, out: Sequence[Any] | None = None
    ) -> Work[list[Any]]:
        """Rank r holds, for each rank-leading ``(size, *shape)``, the reduction of all ranks' r-th parts."""
        return _Asked(self, "reduce_scatter", parts, out, op=op).post(_rows, _pieces)


class _Asked:
    """A coalesced call whose arguments have been judged."""

    def __init__(
        self,
        collectives: CoalescedCollectives,
        collective: str,
        arrays: Sequence[Any],
        out: Sequence[Any] | None,
        *,
        op: ReduceOp | None = None,
        root: int | None = None,
    ) -> None:
        self.comm = cast("Communicator", collectives)  # nothing else derives from CoalescedCollectives
        self.collective, self.name, self.op = collective, f"{collective}_coalesced", op
        self.root = None if root is None else judge.rank_of(self.comm, self.name, "root", root)
        self.arrays = self._listed(arrays, "input")
        self.tensors = [self._read(array, f"input[{place}]") for place, array in enumerate(self.arrays)]
        self.kinds = [None if out is not None else judge.kind_of(self.comm, self.name, array) for array in self.arrays]
        self.targets = None if out is None else self._targets(self._listed(out, "output"))
        self.out = out
        self.buckets = self._buckets()
        self.reductions = [self._reduction(bucket.tensors[0].dtype) for bucket in self.buckets]

    def _reduction(self, dtype: torch.dtype) -> tuple[Any, ...]:
        return () if self.op is None else judge.reduce_op_of(self.comm, self.name, self.op, dtype)

    def _read(self, array: Any, what: str) -> Any:
        if self.collective == "reduce_scatter":
            return judge.parts_of(self.comm, self.name, array, what)
        tensor = judge.tensor_of(self.comm, self.name, array, what)
        judge.refuse_kind(self.comm, self.name, tensor)
        return tensor

    def _listed(self, arrays: Sequence[Any], what: str) -> list[Any]:
        place = (self.comm.rank, self.comm.size)
        if not isinstance(arrays, list | tuple):
            got, wanted = type(arrays).__qualname__, "a list or tuple of arrays"
            raise ArgumentTypeError(refusal(self.name, what, got, wanted, *place))
        if not arrays:
            raise ArgumentValueError(refusal(self.name, f"length of {what} list", 0, "at least 1", *place))
        return list(arrays)

    def _targets(self, out: list[Any]) -> list[judge.Target]:
        if len(out) != len(self.arrays):
            wanted = f"{len(self.arrays)}, one per input"
            text = refusal(self.name, "length of output list", len(out), wanted, self.comm.rank, self.comm.size)
            raise ArgumentValueError(text)
        targets = [
            judge.output_of(self.comm, self.name, array, self._result_shape(tensor), tensor)
            for array, tensor in zip(out, self.tensors, strict=True)
        ]
        judge.require_apart(self.comm, self.name, [cast(Tensor, target.own) for target in targets])
        return targets

    def _result_shape(self, tensor: Tensor) -> Shape:
        shape = tuple(tensor.shape)
        if self.collective == "all_gather":
            return (self.comm.size, *shape)
        return shape[1:] if self.collective == "reduce_scatter" else shape

    def post(self, lay: Callable[[list[Tensor]], Tensor], pieces: Pieces) -> Work[list[Any]]:
        wholes = [lay(self._given(bucket)) for bucket in self.buckets]
        works = [self._posted(*each) for each in zip(self.buckets, wholes, self.reductions, strict=True)]
        return together(works).then(lambda found: self._results(found, pieces))

    def _buckets(self) -> list[_Bucket]:
        found: dict[tuple[torch.dtype, torch.device], _Bucket] = {}
        for place, tensor in enumerate(self.tensors):
            bucket = found.setdefault((tensor.dtype, tensor.device), _Bucket([], []))
            bucket.places.append(place)
            bucket.tensors.append(tensor)
        return list(found.values())

    def _given(self, bucket: _Bucket) -> list[Tensor]:
        """What goes in: part of the graph unless the caller gave places for the results."""
        return bucket.tensors if self.out is None else [tensor.detach() for tensor in bucket.tensors]

    def _posted(self, bucket: _Bucket, whole: Tensor, reduction: tuple[Any, ...]) -> Work[Any]:
        comm, gives = self.comm, self.root in (None, self.comm.rank)
        needs_grad = gives and whole.requires_grad and torch.is_grad_enabled()
        call = comm._call(self.collective, whole, *reduction, root=self.root, needs_grad=needs_grad)
        shape = tuple(whole.shape[1:]) if self.collective == "reduce_scatter" else tuple(whole.shape)
        call = call._replace(shape=shape, content=bucket.content(len(self.arrays)))
        return comm._post(call, whole if gives else None, None, whole, None, whole.device)

    def _results(self, found: list[Tensor], pieces: Pieces) -> Any:
        results: list[Any] = [None] * len(self.tensors)
        for bucket, whole in zip(self.buckets, found, strict=True):
            shapes = [self._part_shape(tensor) for tensor in bucket.tensors]
            for place, piece in zip(bucket.places, pieces(whole, shapes), strict=True):
                results[place] = self._delivered(place, piece)
        for follows in map(follower, self.arrays if self.out is None else self.out):
            if follows is not None:
                follows(results)
        return results if self.out is None else self.out

    def _part_shape(self, tensor: Tensor) -> Shape:
        return tuple(tensor.shape[1:] if self.collective == "reduce_scatter" else tensor.shape)

    def _delivered(self, place: int, piece: Tensor) -> Any:
        if self.targets is not None:
            own = self.targets[place].own
            return own.copy_(piece) if isinstance(own, Tensor) else own
        kind = self.kinds[place]
        return piece if kind is None else kind(piece)


def _flat(tensors: list[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def _rows(tensors: list[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(tensor.shape[0], -1) for tensor in tensors], dim=1)


def _pieces(whole: Tensor, shapes: list[Shape]) -> list[Tensor]:
    return [piece.view(shape) for piece, shape in zip(_narrowed(whole, shapes), shapes, strict=True)]


def _columns(whole: Tensor, shapes: list[Shape]) -> list[Tensor]:
    size = whole.shape[0]
    return [piece.view(size, *shape) for piece, shape in zip(_narrowed(whole, shapes), shapes, strict=True)]


def _narrowed(whole: Tensor, shapes: list[Shape]) -> list[Tensor]:
    """Pieces along the last axis; one view each, since torch lets nobody write to views that come as a list."""
    ends = list(accumulate(torch.Size(shape).numel() for shape in shapes))
    return [whole.narrow(-1, start, end - start) for start, end in zip([0, *ends], ends, strict=False)]
