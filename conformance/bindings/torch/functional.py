"""``torch.distributed.nn.functional``: differentiable collectives that return their result."""

from __future__ import annotations

from typing import Any

from collshim.conformance.bindings.admits import FLOATS, Admits
from collshim.conformance.bindings.answers import Shaped, Tree
from collshim.conformance.bindings.binding import Binding, blank
from collshim.conformance.bindings.results import AllGatherParts, AllReduced, AllToAllJoined, AllToAllParts, Asked
from collshim.conformance.bindings.rooted_results import (
    Broadcasted,
    GatheredParts,
    Reduced,
    ReduceScatteredParts,
    ScatteredParts,
)
from collshim.conformance.bindings.torch.common import CONTIGUOUS, DTYPES, FRAMEWORK, OPS, op

_PATH = "torch.distributed.nn.functional."
_ROWS = Admits(dtypes=FLOATS, groups="ordered", layouts=CONTIGUOUS, least_ndim=1, gradient=True)
_ANY = Admits(dtypes=FLOATS, groups="ordered", layouts=CONTIGUOUS, gradient=True)
_SUMS = Admits(dtypes=FLOATS, groups="ordered", reduce_ops=tuple(OPS), gradient=True)
_PARTS = Admits(dtypes=DTYPES, groups="ordered", layouts=CONTIGUOUS, ragged=True, least_ndim=1, gradient=True)
_SUMMED = Admits(dtypes=FLOATS, groups="ordered", layouts=CONTIGUOUS, reduce_ops=tuple(OPS), gradient=True)


def _gather(asked: Asked) -> Tree:
    return asked.function(asked.given, **_within(asked))


def _reduce(asked: Asked) -> Tree:
    return asked.function(asked.given, **op(asked.place, asked.case.reduce_op), **_within(asked))


def _to_root(asked: Asked) -> Tree:
    return asked.function(asked.given, asked.case.root_rank, **_within(asked))


def _reduce_to_root(asked: Asked) -> Tree:
    return asked.function(asked.given, asked.case.root_rank, **op(asked.place, asked.case.reduce_op), **_within(asked))


def _reduce_scatter(asked: Asked) -> Tree:
    output = blank(asked.case, asked.case.part_shape(asked.rank, asked.rank))
    return asked.function(output, asked.given, **op(asked.place, asked.case.reduce_op), **_within(asked))


def _exchange(asked: Asked) -> Tree:
    shapes = [asked.case.part_shape(giver, asked.rank) for giver in range(len(asked.case.ranks))]
    return asked.function([blank(asked.case, shape) for shape in shapes], asked.given, **_within(asked))


def _exchange_single(asked: Asked) -> Tree:
    output = blank(asked.case, asked.given.shape)
    return asked.function(output, asked.given, **_within(asked))


def _within(asked: Asked) -> dict[str, Any]:
    # Left out where it is the world: the default was evaluated at import, and None is no group.
    return {} if asked.group is None else {"group": asked.group}


def _unsaid(case: Any) -> Tree:
    return Shaped(case.shape, case.dtype)


def _bound(binding: Any, name: str, **more: Any) -> Binding:
    return binding(framework=FRAMEWORK, path=_PATH + name, **more)  # type: ignore[no-any-return]


FUNCTIONAL: tuple[Binding, ...] = (
    _bound(AllGatherParts, "all_gather", admits=_ANY, speak=_gather, wrap=tuple),
    _bound(AllReduced, "all_reduce", admits=_SUMS, speak=_reduce),
    _bound(AllToAllParts, "all_to_all", admits=_PARTS, speak=_exchange, wrap=tuple),
    _bound(AllToAllJoined, "all_to_all_single", admits=_ROWS, speak=_exchange_single),
    _bound(Broadcasted, "broadcast", admits=_ANY, speak=_to_root, elsewhere="zeros"),
    _bound(GatheredParts, "gather", admits=_ANY, speak=_to_root, wrap=tuple),
    _bound(ScatteredParts, "scatter", admits=_ANY, speak=_to_root, elsewhere="zeros"),
    _bound(Reduced, "reduce", admits=_SUMMED, speak=_reduce_to_root, others=_unsaid),
    _bound(ReduceScatteredParts, "reduce_scatter", admits=_SUMMED, speak=_reduce_scatter),
)
