"""Hypothesis strategies that draw only cases that a binding admits, so that none is discarded."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from collshim.conformance.bindings.admits import DIFFERENTIATED, INEXACT, Admits
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import OBJECTS, PART_PER_RANK, RINGS, ROOTED, Case
from collshim.conformance.corners import groups
from collshim.conformance.effort import PROFILE
from collshim.conformance.values import REDUCTIONS, Shape

# No deadline: the ranks have one. No check for slowness: the ranks' start counts towards the first example. Fixtures
# per function: one patience applies to all examples of a test.
_COMMON = settings(
    deadline=None,
    database=None,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture),
)
settings.register_profile("collshim-dev", _COMMON, max_examples=5)
settings.register_profile("collshim-ci", _COMMON, max_examples=12, derandomize=True)
settings.register_profile("collshim-thorough", _COMMON, max_examples=120, print_blob=True)

DRAWN = settings.get_profile(f"collshim-{PROFILE}")
"""The suite's settings for drawing. The prefix keeps its profiles apart from hypothesis's and users' profiles."""


def cases(binding: Binding, size: int) -> st.SearchStrategy[Case]:
    """Draw any case that ``binding`` supports in a world of ``size`` ranks; shrinks towards plain arrays."""
    return drawn(binding.collective, binding.admits, size)


@st.composite
def drawn(draw: st.DrawFn, collective: str, admits: Admits, size: int) -> Case:
    """Draw a case of ``collective`` within ``admits``."""
    group = draw(st.sampled_from(groups(admits, size)))
    case = Case(collective, size=size, group=group, dtype=admits.dtypes[0], reduce_op=admits.reduce_ops[0])
    case = draw(_places(admits, replace(case, layout=admits.layouts[0], kind=admits.kinds[0])))
    if collective == "barrier":
        return replace(case, dtype="float32") if "float32" in admits.dtypes else case
    case = replace(case, seed=draw(st.integers(0, 999)))
    return case if collective in OBJECTS else draw(_arrays(admits, case))


@st.composite
def _places(draw: st.DrawFn, admits: Admits, case: Case) -> Case:
    """Add a root or a shift if the collective of ``case`` has one."""
    size = len(case.ranks)
    if case.collective in ROOTED and admits.roots:
        return replace(case, root=draw(st.integers(0, size - 1)))
    return replace(case, shift=draw(st.integers(1, size - 1))) if case.collective in RINGS else case


@st.composite
def _arrays(draw: st.DrawFn, admits: Admits, case: Case) -> Case:
    """Add arrays of some shape, layout, kind and dtype to ``case``."""
    shape = draw(shapes(admits))
    array_case = replace(
        case,
        shape=shape,
        axis=draw(_axes(admits.axes, shape)),
        split_axis=draw(_axes(admits.split_axes, shape)),
        layout=draw(st.sampled_from(admits.layouts)),
        kind=draw(st.sampled_from(admits.kinds)),
    )
    return draw(_gradients(admits, draw(_lengths(admits, draw(_numbers(admits, array_case))))))


def shapes(admits: Admits) -> st.SearchStrategy[Shape]:
    """Draw shapes of up to three axes and few elements."""
    length = st.integers(0 if admits.empty else 1, 4)
    return st.lists(length, min_size=admits.least_ndim, max_size=3).map(tuple)


def _axes(any_axis: bool, shape: Shape) -> st.SearchStrategy[int]:
    return st.integers(0, max(len(shape) - 1, 0)) if any_axis else st.just(0)


@st.composite
def _numbers(draw: st.DrawFn, admits: Admits, case: Case) -> Case:
    """Add a compatible dtype, reduction and family of values to ``case``."""
    pairs = list(product(admits.dtypes, admits.reduce_ops if case.collective in REDUCTIONS else ("sum",)))
    options = [replace(case, dtype=dtype, reduce_op=op) for dtype, op in pairs]
    drawn_case = draw(st.sampled_from([option for option in options if admits.case(option)]))
    inexact = drawn_case.dtype in INEXACT
    return replace(drawn_case, family=draw(st.sampled_from(("exact", "real"))) if inexact else "exact")


@st.composite
def _lengths(draw: st.DrawFn, admits: Admits, case: Case) -> Case:
    """Add unequal parts to ``case`` if they are admitted and drawn."""
    if not (admits.ragged and case.shape and draw(st.booleans())):
        return case
    size = len(case.ranks)
    length = st.integers(0 if admits.empty else 1, 3)
    row = st.tuples(*[length] * size)
    if case.collective not in PART_PER_RANK:
        return replace(case, lengths=draw(row))
    if case.collective == "reduce_scatter":  # a receiver's part has one shape, whichever rank sends it
        return replace(case, lengths=(draw(row),) * size)
    return replace(case, lengths=draw(st.tuples(*[row] * size)))


@st.composite
def _gradients(draw: st.DrawFn, admits: Admits, case: Case) -> Case:
    """Add a loss to differentiate to ``case`` if that is admitted and drawn."""
    gradient_case = replace(case, gradient=True)
    is_differentiable = case.dtype in DIFFERENTIATED and admits.case(gradient_case)
    return gradient_case if is_differentiable and draw(st.booleans()) else case
