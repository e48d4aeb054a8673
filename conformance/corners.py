"""The fixed cases that every binding runs: one for each corner that it admits, and one for each refusal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from collshim.calls.call import EAGER_BYTES
from collshim.conformance.bindings.admits import Admits
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import OBJECTS, PART_PER_RANK, RINGS, ROOTED, Case
from collshim.conformance.reference import BITWISE
from collshim.conformance.values import REDUCTIONS, Shape
from collshim.transports.threads.carrier import SHARED_BYTES

LARGE: Shape = (2, 3 * EAGER_BYTES)
"""A shape whose data, in any dtype and in each row, is too large for a fingerprint and for a send that does not wait;
in float32 it is too large to travel inside a message or a slot of shared memory."""

WIDE = ("float64", "int64", "complex128")
"""Dtypes whose numbers change if they are converted to a common narrower dtype and back."""

SHARED: Shape = (2, SHARED_BYTES // (2 * 2 * 4) + 1)
"""A shape so large, in float32 on two ranks, that threads share the work of every collective."""


def corners(binding: Binding, size: int) -> list[Case]:
    """Return the corner cases that ``binding`` admits.

    These are 0-d and empty arrays, each layout, kind, dtype, reduction, root, group and axis, unequal parts, gradients.
    """
    plain = Case(binding.collective, size=size, reduce_op=binding.admits.reduce_ops[0], seed=1)
    plain = replace(plain, kind=binding.admits.kinds[0])
    varied = [plain, *_places(binding, plain)]
    if binding.collective in OBJECTS:
        varied += [replace(plain, kind=kind) for kind in binding.admits.kinds]
    elif binding.collective != "barrier":
        varied += [*_arrays(binding, plain), *_calls(binding, plain), *_gradients(binding, plain)]
        varied += _large(binding, plain)
    return [case for case in dict.fromkeys(varied) if binding.supports(case)]


def shared_work(binding: Binding) -> Case | None:
    """Return a case whose work threads share, or None; only the plain form of a function runs one."""
    moves = binding.collective not in ("barrier", *OBJECTS, *RINGS) and not binding.form
    case = Case(binding.collective, shape=SHARED, reduce_op=binding.admits.reduce_ops[0], kind=binding.admits.kinds[0])
    return case if moves and binding.supports(case) else None


def dealt(binding: Binding, sizes: Sequence[int], shares: int) -> list[Case]:
    """Return one in ``shares`` of the corners for worlds of each of ``sizes``; every corner runs at some size."""
    alike: dict[Case, list[tuple[int, Case]]] = {}
    for place, size in enumerate(sizes):
        for case in corners(binding, size):
            alike.setdefault(_of_any_size(case), []).append((place, case))
    found: list[tuple[int, Case]] = []
    for number, several in enumerate(alike.values()):
        asked = [one for one in several if (one[0] - number) % shares == 0]
        asked = asked or [several[number % len(several)]]
        found += asked + _among_ranks(asked, several)
    return [case for _, case in sorted(found, key=lambda one: one[0])]


def _among_ranks(asked: list[tuple[int, Case]], several: list[tuple[int, Case]]) -> list[tuple[int, Case]]:
    """Return a corner for several ranks, if the dtype is wide and the chosen corners have a single rank.

    A function may round the numbers that it sends to other ranks, which a single rank does not show.
    """
    if several[0][1].dtype not in WIDE or any(len(case.ranks) > 1 for _, case in asked):
        return []
    return [one for one in several if len(one[1].ranks) > 1][:1]


def _of_any_size(case: Case) -> Case:
    """Normalize a corner across sizes of worlds: the last rank becomes -1, others except the first become 1."""
    last = len(case.ranks) - 1
    root = 0 if case.root == 0 else -1 if case.root == last else 1
    shift = 0 if case.shift == 1 else -1 if case.shift == last else 1
    group = None if case.group is None else (int(len(case.group) == case.size),)
    lengths = None if case.lengths is None else ()
    return replace(case, size=0, group=group, lengths=lengths, root=root, shift=shift, seed=min(case.seed, 1))


def refusals(binding: Binding, size: int) -> list[Case]:
    """Return the cases that the framework refuses on every rank, in a world of ``size``."""
    plain = Case(binding.collective, size=size)
    asked = [replace(plain, **refused.changes) for refused in binding.refused]
    return [case for case in asked if case.size == size]


def groups(admits: Admits, size: int) -> list[tuple[int, ...] | None]:
    """Return the groups to use; they are few, because each is created once on every rank and kept."""
    if admits.groups is None or size == 1:
        return [None]
    if admits.groups == "sorted":
        return [None, *([tuple(range(1, size))] if size > admits.least_size else [])]
    return [None, tuple(reversed(range(size))), *([(size - 1, 0)] if size > 2 else [])]


def _places(binding: Binding, plain: Case) -> Iterator[Case]:
    """Yield every group, each with every root or shift."""
    for group in groups(binding.admits, plain.size):
        grouped = replace(plain, group=group)
        yield grouped
        for rank in range(1, len(grouped.ranks)):
            if plain.collective in ROOTED:
                yield replace(grouped, root=rank, seed=rank)
            if plain.collective in RINGS:
                yield replace(grouped, shift=rank, seed=rank)


def _arrays(binding: Binding, plain: Case) -> Iterator[Case]:
    admits = binding.admits
    for kind in admits.kinds:
        yield from (replace(plain, kind=kind, layout=layout) for layout in admits.layouts)
        yield replace(plain, kind=kind, layout="strided", shape=(1,))  # contiguous, although its stride is 2
        yield from (replace(plain, kind=kind, shape=shape) for shape in ((), (1,), (0,), (0, 3), (2, 0), (1, 2, 3)))
    yield from (replace(plain, dtype=dtype) for dtype in admits.dtypes)
    if not binding.form:
        yield from (replace(plain, dtype=dtype, kind=kind) for dtype in ("float64", "int64") for kind in admits.kinds)
        yield from (replace(plain, dtype="float64", layout=layout) for layout in admits.layouts)


def _calls(binding: Binding, plain: Case) -> Iterator[Case]:
    admits = binding.admits
    if plain.collective in REDUCTIONS:
        yield from (replace(plain, reduce_op=op, dtype=_dtype(op)) for op in admits.reduce_ops)
        yield from (replace(plain, reduce_op=op, dtype=dtype) for op in _ops(binding) for dtype in admits.dtypes)
        yield from (replace(plain, reduce_op=op, family="real") for op in admits.reduce_ops)
    solid = replace(plain, shape=(2, 3, 4))
    yield from (replace(solid, axis=axis, split_axis=cut) for axis in range(3) for cut in range(3))
    yield replace(plain, lengths=_unequal(plain))


def _ops(binding: Binding) -> Sequence[str]:
    """Return the reductions to run with every dtype; other forms of a function run only the first and max."""
    ops = binding.admits.reduce_ops
    return [op for op in ops if op in (ops[0], "max")] if binding.form else ops


def _gradients(binding: Binding, plain: Case) -> Iterator[Case]:
    for case in (plain, *_places(binding, plain), *_calls(binding, plain)):
        yield replace(case, gradient=True)
    yield replace(plain, gradient=True, dtype="float64", shape=(3, 1))


def _large(binding: Binding, plain: Case) -> Iterator[Case]:
    """Yield arrays too large to travel with the ranks' calls; their data takes another path."""
    wide = replace(plain, shape=LARGE)
    if 2 <= plain.size <= 4:
        exact = "float64" if "float64" in binding.admits.dtypes else plain.dtype
        root = len(plain.ranks) - 1 if plain.collective in ROOTED else 0
        yield from (wide, replace(wide, lengths=_unequal(plain)), replace(wide, root=root, dtype=exact))
        yield replace(wide, layout="transposed")
        dtypes = ("bool", "complex64") if binding.form else ("bool", "complex64", "int64")
        yield from (replace(wide, dtype=dtype) for dtype in dtypes)
        yield from (replace(wide, reduce_op=op, dtype=_dtype(op)) for op in binding.admits.reduce_ops)


def _dtype(op: str) -> str:
    return "int32" if op in BITWISE else "float32"


def _unequal(case: Case) -> tuple[int, ...] | tuple[tuple[int, ...], ...]:
    """Return lengths that differ everywhere, with a zero among them."""
    ranks = range(len(case.ranks))
    if case.collective == "reduce_scatter":
        return tuple(tuple(receiver % 4 for receiver in ranks) for _ in ranks)
    if case.collective in PART_PER_RANK:
        return tuple(tuple((sender + 2 * receiver) % 4 for receiver in ranks) for sender in ranks)
    return tuple(rank % 4 for rank in ranks)
