"""Several arrays in one call: they are laid end to end, and one collective per dtype and device moves them.

The ranks compare the number of arrays and their shapes, as for any other call. If one collective fails, the others are
still posted and waited for, so that the ranks stay in step.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Hashable, Sequence
from functools import partial
from itertools import accumulate
from operator import is_
from typing import NamedTuple, cast

import torch
from torch import Tensor

from collshim.arrays import Array, Arrays, FromTorch, stream_follower
from collshim.arrays.arithmetic import ReduceOp
from collshim.calls import validation
from collshim.calls.collective import ALL_GATHER, ALL_REDUCE, BROADCAST, REDUCE_SCATTER, Collective, Shape
from collshim.calls.recognizer import dense
from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.layout import needs_grad
from collshim.posting import Posting
from collshim.together import Together
from collshim.work import COMPLETE, Work

_TEXT_LENGTH = 120
"""Characters of the list of shapes that an error text shows; a checksum stands for the rest."""


class _Bucket(NamedTuple):
    """The arrays of one dtype and device, and their indices in the caller's list."""

    places: list[int]
    tensors: list[Tensor]

    def content(self, of: int) -> str:
        """Describe the arrays for the comparison between ranks; ``of`` is the number of all arrays of the call."""
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in self.tensors)
        if len(shapes) > _TEXT_LENGTH:
            shapes = f"{shapes[:_TEXT_LENGTH]}... {zlib.crc32(shapes.encode()):08x}"
        count = str(of) if len(self.tensors) == of else f"{len(self.tensors)} of {of}"
        return f"coalesced of {count}: {shapes}"


class CoalescedCollectives(Posting):
    """``Communicator``'s methods for lists of arrays, whose number and shapes are the same on all ranks.

    Arrays may have any kinds and dtypes; each result has the kind of its array. Without ``out``, results are
    differentiable, like those of the plain methods. ``out`` has one array per result.
    """

    def all_reduce_coalesced(
        self, arrays: Sequence[Array], op: ReduceOp = "sum", *, out: Sequence[Array] | None = None
    ) -> Work[list[Array]]:
        """Reduce each array of the list over all ranks; every rank receives the results.

        ``out`` may be ``arrays`` itself.

        Examples:
            >>> ranks(lambda comm: comm.all_reduce_coalesced([np.array([1, 2]), np.array([0.5])]).wait())[0]
            [array([2, 4]), array([1.])]
        """
        work = self._repeated_in_place(arrays, out, op)
        return _Coalesced(self, ALL_REDUCE, arrays, out, op=op).post() if work is None else work

    def broadcast_coalesced(
        self, arrays: Sequence[Array], root: int = 0, *, out: Sequence[Array] | None = None
    ) -> Work[list[Array]]:
        """Send the root's arrays to every rank; ``out`` may be ``arrays`` itself."""
        return _Coalesced(self, BROADCAST, arrays, out, root=root).post()

    def all_gather_coalesced(self, arrays: Sequence[Array], *, out: Sequence[Array] | None = None) -> Work[list[Array]]:
        """Gather, for each array of the list, all ranks' arrays on every rank, as one array ``(size, *shape)``."""
        return _Coalesced(self, ALL_GATHER, arrays, out).post()

    def reduce_scatter_coalesced(
        self, parts: Sequence[Array], op: ReduceOp = "sum", *, out: Sequence[Array] | None = None
    ) -> Work[list[Array]]:
        """Reduce, for each rank-leading array of the list, all ranks' r-th parts; rank r receives the results."""
        return _Coalesced(self, REDUCE_SCATTER, parts, out, op=op).post()

    def repeat_coalesced(self, tensors: list[Array], op: str, *, waits: bool = False) -> Work[list[Array]] | None:
        """Post an all_reduce of tensors in place if it is like an earlier, validated call; return None otherwise.

        If the caller ``waits`` at once, the work may be ``COMPLETE``.
        """
        forms = []
        for tensor in tensors:
            if type(tensor) is not Tensor or not tensor.is_cpu or dense(tensor) is not tensor:
                return None
            forms.append((tensor.shape, tensor.dtype))
        known = self._plans.get((ALL_REDUCE, op, "coalesced", *forms))
        if known is None or not known.keeps_apart([], tensors):
            return None
        plan = known.plan
        if plan.carrier.takes_lists:
            return self._start(plan, tensors, tensors, tensors, None, None)
        whole = _flat(tensors)
        work = self._start(plan, whole, whole, tensors, None, None, waits)
        if work is COMPLETE:
            _cut_into(whole, tensors)
            return work
        return work.then(lambda _: _cut_into(whole, tensors))

    def _repeated_in_place(self, arrays: Arrays, out: Arrays, op: ReduceOp) -> Work[list[Array]] | None:
        if type(arrays) is not list or type(out) is not list or not arrays or type(op) is not str:
            return None
        if len(out) != len(arrays) or not all(map(is_, arrays, out)):
            return None
        work = self.repeat_coalesced(arrays, op)
        if work is not None:
            work.out = out
        return work


class _Coalesced:
    """A coalesced call whose arguments have been validated."""

    def __init__(
        self,
        posting: Posting,
        collective: Collective,
        arrays: Sequence[Array],
        out: Sequence[Array] | None,
        *,
        op: ReduceOp | None = None,
        root: int | None = None,
    ) -> None:
        self.posting = posting
        self.collective, self.name, self.op = collective, f"{collective.name}_coalesced", op
        self.root = None if root is None else validation.rank_of(posting, self.name, "root", root)
        self.arrays = self._listed(arrays, "input")
        self.tensors = [self._read(array, f"input[{place}]") for place, array in enumerate(self.arrays)]
        self.forms = self._kinds() if out is None else self._copies(self._listed(out, "output"))
        self.out = out
        self.buckets = self._buckets()
        self.reductions = [
            () if op is None else validation.reduce_op_of(posting, self.name, op, bucket.tensors[0].dtype)
            for bucket in self.buckets
        ]

    def _read(self, array: Arrays, what: str) -> Tensor:
        if self.collective.gives == "parts":
            return cast(Tensor, validation.parts_of(self.posting, self.name, array, what))
        tensor = validation.tensor_of(self.posting, self.name, array, what)
        validation.refuse_kind(self.posting, self.name, tensor)
        return tensor

    def _listed(self, arrays: Sequence[Array], what: str) -> list[Array]:
        refusal = partial(validation.error_text, self.posting, self.name)
        if not isinstance(arrays, list | tuple):
            raise ArgumentTypeError(refusal(what, type(arrays).__qualname__, "a list or tuple of arrays"))
        if not arrays:
            raise ArgumentValueError(refusal(f"length of {what} list", 0, "at least 1"))
        return list(arrays)

    def _kinds(self) -> list[FromTorch | None]:
        """What makes of each result an array of its input's kind; None where it is one."""
        return [validation.kind_of(self.posting, self.name, array) for array in self.arrays]

    def _copies(self, out: list[Array]) -> list[FromTorch | None]:
        """Return functions that copy each result into its array of ``out``."""
        posting, gets = self.posting, self.collective.result_shape
        if len(out) != len(self.arrays):
            expected = f"{len(self.arrays)}, one per input"
            text = validation.error_text(posting, self.name, "length of output list", len(out), expected)
            raise ArgumentValueError(text)
        targets = [
            validation.output_of(
                posting,
                self.name,
                array,
                gets(self._part_shape(tensor), posting.size),
                tensor,
                may_overlap=self.collective is ALL_REDUCE and array is own,
            )
            for array, own, tensor in zip(out, self.arrays, self.tensors, strict=True)
        ]
        validation.require_apart(posting, self.name, [cast(Tensor, target.own) for target in targets])
        return [target.put for target in targets]

    def _part_shape(self, tensor: Tensor) -> Shape:
        return tuple(tensor.shape[1:] if self.collective.gives == "parts" else tensor.shape)

    def post(self) -> Work[list[Array]]:
        """Post one call per bucket, whose arrays are laid end to end."""
        lay = _rows if self.collective.gives == "parts" else _flat
        wholes = [lay(bucket.tensors) for bucket in self.buckets]
        if self.out is not None:  # which is no part of the graph
            wholes = [whole.detach() for whole in wholes]
        works = [self._posted(*each) for each in zip(self.buckets, wholes, self.reductions, strict=True)]
        return Together(works).then(self._results)

    def _buckets(self) -> list[_Bucket]:
        buckets: dict[tuple[torch.dtype, torch.device], _Bucket] = {}
        for place, tensor in enumerate(self.tensors):
            bucket = buckets.setdefault((tensor.dtype, tensor.device), _Bucket([], []))
            bucket.places.append(place)
            bucket.tensors.append(tensor)
        return list(buckets.values())

    def _posted(self, bucket: _Bucket, whole: Tensor, reduction: tuple[str, float | None] | tuple[()]) -> Work[Array]:
        posting, collective = self.posting, self.collective
        gives = collective.gives_on(posting.rank, self.root)
        graph = gives and needs_grad(whole)
        reduce_op, factor = reduction or (None, None)
        call = posting._call(collective, whole, reduce_op, factor, root=self.root, needs_grad=graph)
        call = call._replace(shape=self._part_shape(whole), content=bucket.content(len(self.arrays)))
        is_whole = collective is ALL_REDUCE and len(self.buckets) == 1 and whole.is_cpu
        key = _key(self.op, bucket.tensors) if is_whole else None
        return posting._post(call, whole if gives else None, None, whole, None, whole.device, key)

    def _results(self, wholes: list[Tensor]) -> list[Array]:
        results: list[Array] = [None] * len(self.tensors)
        for bucket, whole in zip(self.buckets, wholes, strict=True):
            shapes = [self._part_shape(tensor) for tensor in bucket.tensors]
            for place, piece in zip(bucket.places, _pieces(whole, shapes), strict=True):
                form = self.forms[place]
                results[place] = piece if form is None else form(piece)
        for follow in map(stream_follower, self.arrays if self.out is None else self.out):
            if follow is not None:
                follow(results)
        return results if self.out is None else cast(list[Array], self.out)


def _key(op: Hashable, tensors: Sequence[Tensor]) -> tuple[Hashable, ...]:
    return (ALL_REDUCE, op, "coalesced", *[(tensor.shape, tensor.dtype) for tensor in tensors])


def _cut_into(whole: Tensor, out: list[Tensor]) -> list[Tensor]:
    for tensor, piece in zip(out, torch.split_with_sizes(whole, [tensor.numel() for tensor in out]), strict=True):
        tensor.copy_(piece.view_as(tensor))
    return out


def _flat(tensors: list[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def _rows(tensors: list[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(tensor.shape[0], -1) for tensor in tensors], dim=1)


def _pieces(whole: Tensor, shapes: list[Shape]) -> list[Tensor]:
    """Cut along the last axis; one view per piece, since torch refuses writes to views that come as a list."""
    lengths = [math.prod(shape) for shape in shapes]
    starts = accumulate(lengths, initial=0)
    pieces = [whole.narrow(-1, start, length) for start, length in zip(starts, lengths, strict=False)]
    return [piece.view((*whole.shape[:-1], *shape)) for piece, shape in zip(pieces, shapes, strict=True)]
