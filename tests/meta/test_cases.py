"""Cases: one line each, the same values every time, exact if they say so."""

from __future__ import annotations

import doctest
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from collshim.conformance import cases as module
from collshim.conformance import reference
from collshim.conformance.bindings import bindings
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import Case
from collshim.conformance.corners import corners, dealt, refusals, shared_work
from collshim.conformance.effort import THOROUGH
from collshim.conformance.strategies import cases
from collshim.transports.threads.carrier import SHARED_BYTES


def cases_of(binding: Binding) -> st.SearchStrategy[Case]:
    return st.integers(binding.admits.least_size, 4).flatmap(lambda size: cases(binding, size))


any_case = st.sampled_from(bindings()).flatmap(cases_of)
quick = settings(deadline=None, derandomize=True)


def test_documentation_examples_hold() -> None:
    assert doctest.testmod(module).failed == 0


@quick
@given(case=any_case)
def test_case_prints_as_one_parsable_line(case: Case) -> None:
    assert "\n" not in str(case)
    assert Case.parse(str(case)) == case
    assert eval(str(case)) == case


@pytest.mark.parametrize("line", ["print(1)", "Case(x)", "Case('a', size=f())", "1"])
def test_invalid_case_is_refused_and_not_run(line: str) -> None:
    with pytest.raises(ValueError, match=r"should be|malformed"):
        Case.parse(line)


@quick
@given(case=any_case)
def test_same_case_has_the_same_values(case: Case) -> None:
    size = len(case.ranks) if case.collective in module.PART_PER_RANK else 1
    first, second = case.values(size), Case.parse(str(case)).values(size)
    assert [part.tobytes() for part in first] == [part.tobytes() for part in second]
    assert repr(case.object_parts()) == repr(Case.parse(str(case)).object_parts())


@quick
@given(case=any_case.filter(lambda case: case.family == "exact"))
def test_values_can_replace_the_seed(case: Case) -> None:
    size = len(case.ranks) if case.collective in module.PART_PER_RANK else 1
    given = case.with_values(case.values(size))
    assert Case.parse(str(given)) == given
    assert [part.tobytes() for part in given.values(size)] == [part.tobytes() for part in case.values(size)]


def test_objects_of_a_case_are_distinct() -> None:
    case = Case("scatter_object", size=4, seed=3)
    held = [repr(one) for row in case.object_parts() for one in row]
    assert len(set(held)) == 16
    assert len({repr(one) for one in case.objects()}) == 4


def test_another_seed_has_other_values() -> None:
    case = Case("all_gather", shape=(8,))
    assert case.arrays()[0].tolist() != replace(case, seed=5).arrays()[0].tolist()


def test_elements_of_a_moving_case_are_distinct() -> None:
    values = np.concatenate([part.ravel() for part in Case("all_gather", size=4, shape=(5, 5)).arrays()])
    distinct = values[np.isfinite(values) & (values != 0)]
    assert len(distinct) > 60
    assert len(set(distinct.tolist())) == len(distinct)


def test_infinities_and_signed_zeros_are_kept() -> None:
    given = Case("broadcast", shape=(2,)).with_values([np.array([-0.0, -np.inf], "float32")] * 2)
    negative = given.array_of(0)
    positive = replace(given, given=(0.0, float("inf")) * 2).array_of(0)
    assert Case.parse(str(given)).array_of(0).tobytes() == negative.tobytes()
    assert negative.tobytes() == np.array([-0.0, -np.inf], "float32").tobytes() != positive.tobytes()
    assert np.signbit(positive).tolist() == [False, False]


def test_only_float_reductions_have_a_tolerance() -> None:
    assert Case("all_reduce", family="real").tolerance > 0
    assert Case("all_reduce").tolerance == 0
    assert Case("all_gather", family="real").tolerance == 0


def test_layouts_change_strides_and_not_values() -> None:
    plain = Case("all_gather", shape=(2, 3))
    turned, spread = replace(plain, layout="transposed"), replace(plain, layout="strided")
    assert not turned.arrays()[0].flags.c_contiguous
    assert not spread.arrays()[0].flags.c_contiguous
    assert not spread.arrays()[0].flags.f_contiguous
    for one, other, third in zip(plain.arrays(), turned.arrays(), spread.arrays(), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third)


def test_unequal_parts_match_sender_and_receiver() -> None:
    case = Case("all_to_all", shape=(9, 2), lengths=((0, 1), (2, 3)))
    assert [[part.shape for part in row] for row in case.parts()] == [[(0, 2), (1, 2)], [(2, 2), (3, 2)]]
    gathered = Case("all_gather", shape=(2, 9), axis=1, lengths=(1, 4))
    assert [part.shape for part in gathered.arrays()] == [(2, 1), (2, 4)]


@pytest.mark.parametrize("binding", bindings(), ids=lambda binding: binding.name)
def test_drawn_cases_are_supported(binding: Binding) -> None:
    @settings(deadline=None, derandomize=True, max_examples=40 if THOROUGH else 10)
    @given(case=cases_of(binding))
    def supported(case: Case) -> None:
        assert binding.supports(case), case
        assert binding.refusal(case) is None, case

    supported()


def test_failing_case_shrinks_to_a_plain_one() -> None:
    binding = next(one for one in bindings() if one.name == "torch.distributed.all_gather")
    smallest = find(cases(binding, 3), lambda case: 0 not in case.shape and len(case.shape) > 1, settings=quick)
    assert smallest == Case("all_gather", size=3, shape=(1, 1), dtype="bool")


FEW = ("barrier", *module.OBJECTS)


def whatever_the_size(case: Case) -> tuple[str, str]:
    """Return the case without the consequences of its world's size, and the positions of its root and receiver."""
    last = len(case.ranks) - 1
    root = "first" if case.root == 0 else "last" if case.root == last else "between"
    shift = "next" if case.shift == 1 else "before" if case.shift == last else "beyond"
    return f"{root}, {shift}", str(replace(case, size=2, group=None, lengths=None, root=0, shift=1, seed=1))


@pytest.mark.parametrize("shares", [1, 2, 3, 4])
def test_every_corner_is_dealt_to_some_size(shares: int) -> None:
    sizes = (2, 3, 4, 1)
    for binding in bindings():
        admitted = [size for size in sizes if size >= binding.admits.least_size]
        found = dealt(binding, admitted, shares)
        everywhere = [case for size in admitted for case in corners(binding, size)]
        assert set(found) <= set(everywhere)
        assert len(set(found)) == len(found)
        assert set(map(whatever_the_size, found)) == set(map(whatever_the_size, everywhere))
        assert shares > 1 or set(found) == set(everywhere)


def test_each_size_gets_a_share_of_corners() -> None:
    binding = bindings()[0]
    asked = Counter(case.size for case in dealt(binding, (2, 3, 4, 1), 4))
    assert all(asked[size] < len(corners(binding, size)) / 2 for size in (1, 2, 3, 4))
    assert all(asked[size] > len(corners(binding, size)) / 8 for size in (1, 2, 3, 4))


@pytest.mark.parametrize("collective", module.ROOTED)
def test_every_root_of_every_group_is_a_corner(collective: str) -> None:
    binding = next(one for one in bindings() if one.collective == collective and one.framework.name == "torch")
    asked = {(case.group, case.root) for case in corners(binding, 3)}
    assert {(group, root) for group in (None, (2, 1, 0)) for root in range(3)} | {((2, 0), 1)} <= asked


MOVING = [one for one in (*module.ONE_PART, *module.PART_PER_RANK) if one not in module.RINGS]


@pytest.mark.parametrize("collective", MOVING)
def test_every_collective_has_a_corner_with_shared_work(collective: str) -> None:
    case = next(case for one in bindings() if one.collective == collective and (case := shared_work(one)) is not None)
    inputs = case.parts() if collective in module.PART_PER_RANK else case.arrays()
    rooted = collective in ("broadcast", "scatter")
    assert max(_bytes(inputs[:1] if rooted else inputs), _bytes(reference.of(case))) > SHARED_BYTES


def _bytes(parts: Any) -> int:
    return parts.nbytes if isinstance(parts, np.ndarray) else sum(map(_bytes, parts or ()))


@pytest.mark.parametrize("binding", bindings(), ids=lambda binding: binding.name)
def test_only_corners_are_supported_not_refusals(binding: Binding) -> None:
    assert len(corners(binding, 2)) >= (1 if binding.collective in FEW else 10)
    assert all(binding.supports(case) and binding.refusal(case) is None for case in corners(binding, 2))
    assert len(refusals(binding, 2)) == len(binding.refused)
    assert not any(binding.supports(case) for case in refusals(binding, 2))
