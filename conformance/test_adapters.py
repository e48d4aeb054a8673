"""Every adapter answers as its framework was recorded to answer: drawn cases, corner cases, refused cases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collshim.conformance.bindings import bindings
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import Case
from collshim.conformance.comparison import DifferenceError
from collshim.conformance.corners import corners, dealt, refusals, shared_work
from collshim.conformance.effort import SIZES, TRANSPORTS, shares
from collshim.conformance.missing import require
from collshim.conformance.patience import BEARABLE, Patience
from collshim.conformance.pool import Pools
from collshim.conformance.rules import Rules
from collshim.conformance.strategies import DRAWN, cases

# torch 2.13 renamed functions and plans to drop others; the old names still work, with a warning.
pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated.*:FutureWarning")

REPEATED = ("all_reduce", "reduce", "broadcast", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all")
FORMS = ("", "stacked", "group_src", "group_dst")

every_binding = pytest.mark.parametrize("binding", bindings(), ids=lambda binding: binding.name)
every_transport = pytest.mark.parametrize("transport", TRANSPORTS)


def sizes(binding: Binding, transport: str) -> list[int]:
    """Return the sizes of worlds that the binding runs in, the usual size first."""
    admitted = [size for size in SIZES[transport] if size >= binding.admits.least_size]
    return sorted(admitted, key=lambda size: size != 2)


def asked_sizes(rules: Rules, binding: Binding, transport: str, known: Sequence[int] = ()) -> list[int]:
    """Return the sizes among ``known``, or all ``sizes``, that the options select; skip the test if there are none."""
    asked = rules.sizes(known or sizes(binding, transport))
    if not asked:
        pytest.skip("the selected sizes of worlds do not apply")
    return asked


def is_plain(binding: Binding) -> bool:
    """Check for a torch function for arrays; if calls are not compared, this dialect represents all."""
    return binding.name.startswith("torch.distributed.") and ".nn." not in binding.name and binding.form in FORMS


@every_transport
@every_binding
@DRAWN
@given(data=st.data())
def test_drawn_cases_agree(
    pools: Pools, patience: Patience, rules: Rules, binding: Binding, transport: str, data: st.DataObject
) -> None:
    require(binding, pools.prefix)
    size = data.draw(st.sampled_from(asked_sizes(rules, binding, transport)))
    case = data.draw(cases(binding, size).filter(lambda case: rules.admits(binding, case)))
    if not rules.knows(binding, case):
        rules.check(binding, case, patience.run(pools.of(transport, size), [binding] * size, case))


@every_transport
@every_binding
def test_corner_cases_agree(pools: Pools, patience: Patience, rules: Rules, binding: Binding, transport: str) -> None:
    """Corners run on two ranks first; they are distributed over the other sizes, so that each size has some."""
    ask(pools, patience, rules, binding, transport, dealt(binding, sizes(binding, transport), shares(transport)))


@pytest.mark.parametrize("transport", ["threads"])
@pytest.mark.parametrize("binding", [one for one in bindings() if shared_work(one)], ids=lambda one: one.name)
def test_shared_work_agrees(pools: Pools, patience: Patience, rules: Rules, binding: Binding, transport: str) -> None:
    require(binding, pools.prefix)
    case = shared_work(binding)
    assert case is not None
    asked_sizes(rules, binding, transport, [case.size])
    rules.check(binding, case, patience.run(pools.of(transport, 2), [binding] * 2, case))


@every_transport
@pytest.mark.parametrize("binding", [one for one in bindings() if one.refused], ids=lambda one: one.name)
def test_refused_cases_agree(pools: Pools, patience: Patience, rules: Rules, binding: Binding, transport: str) -> None:
    ask(pools, patience, rules, binding, transport, [*refusals(binding, 2), corners(binding, 2)[0]])


@pytest.mark.parametrize("transport", ["processes", "unchecked"])
@pytest.mark.parametrize(
    "binding", [one for one in bindings() if is_plain(one) and one.collective in REPEATED], ids=lambda one: one.name
)
def test_repeated_calls_agree(pools: Pools, patience: Patience, rules: Rules, binding: Binding, transport: str) -> None:
    """Later calls of a line repeat what the first one found out; gradients need ranks that compare calls."""
    plain = [case for case in dealt(binding, (2, 3), shares(transport)) if not case.gradient]
    ask(pools, patience, rules, binding, transport, (replace(case, seed=seed) for case in plain for seed in (1, 2, 3)))


def ask(
    pools: Pools, patience: Patience, rules: Rules, binding: Binding, transport: str, cases: Iterable[Case]
) -> None:
    """Fail with every case that differs, up to the number that a test tolerates."""
    require(binding, pools.prefix)
    texts: list[str] = []
    asked = list(filter(partial(rules.admits, binding), cases))
    if not asked:
        pytest.skip("none of its cases was selected")
    for case in asked:
        answers = patience.run(pools.of(transport, case.size), [binding] * case.size, case)
        try:
            rules.check(binding, case, answers)
        except DifferenceError as error:
            texts.append(str(error))
        if len(texts) == BEARABLE:
            texts.append("further cases were not run")
            break
    if texts:
        raise DifferenceError("\n\n".join(texts))
