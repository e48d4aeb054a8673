"""The cases that every binding is asked whatever is drawn: one per corner that it admits, one per refusal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import PART_PER_RANK, Case
from collshim.conformance.strategies import groups


def corners(binding: Binding, size: int) -> list[Case]:
    """0-d and empty arrays, each layout, kind, dtype, reduction, group and axis, and unequal parts.

    Those that ``binding`` does not admit are left out.
    """
    plain = Case(binding.collective, size=size, reduce_op=binding.admits.reduce_ops[0], seed=1)
    plain = replace(plain, dtype="float32")
    varied = [plain, *_arrays(binding, plain), *_calls(binding, plain)]
    return [case for case in dict.fromkeys(varied) if binding.supports(case)]


def refusals(binding: Binding, size: int) -> list[Case]:
    """The cases that the framework refuses on every rank, in a world of ``size``."""
    plain = Case(binding.collective, size=size)
    asked = [replace(plain, **refused.changes) for refused in binding.refused]
    return [case for case in asked if case.size == size]


def _arrays(binding: Binding, plain: Case) -> Iterator[Case]:
    admits = binding.admits
    for kind in admits.kinds:
        yield from (replace(plain, kind=kind, layout=layout) for layout in admits.layouts)
        yield replace(plain, kind=kind, layout="strided", shape=(1,))  # contiguous, and yet of stride 2
        yield from (replace(plain, kind=kind, shape=shape) for shape in ((), (1,), (0,), (0, 3), (2, 0), (1, 2, 3)))
    yield from (replace(plain, dtype=dtype) for dtype in admits.dtypes)


def _calls(binding: Binding, plain: Case) -> Iterator[Case]:
    admits = binding.admits
    yield from (replace(plain, reduce_op=op) for op in admits.reduce_ops)
    yield from (replace(plain, group=group) for group in groups(admits, plain.size))
    solid = replace(plain, shape=(2, 3, 4))
    yield from (replace(solid, axis=axis, split_axis=cut) for axis in range(3) for cut in range(3))
    yield replace(plain, lengths=_unequal(plain))


def _unequal(case: Case) -> tuple[int, ...] | tuple[tuple[int, ...], ...]:
    """Lengths that differ everywhere, a zero among them."""
    ranks = range(len(case.ranks))
    if case.collective in PART_PER_RANK:
        return tuple(tuple((giver + 2 * taker) % 4 for taker in ranks) for giver in ranks)
    return tuple(rank % 4 for rank in ranks)
