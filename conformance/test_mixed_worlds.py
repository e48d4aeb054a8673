"""Each rank of one world may use a different framework's dialect: the calls match and the values agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from collshim import MismatchError, RankError, current, launch
from collshim.conformance.bindings import find
from collshim.conformance.bindings.answers import Failure
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.rank_context import resolve
from collshim.conformance.bindings.spelling import Spelling
from collshim.conformance.cases import Case
from collshim.conformance.comparison import check
from collshim.conformance.effort import TRANSPORTS
from collshim.conformance.mixed import COMMON, dialects, pairs, reductions, shared
from collshim.conformance.patience import Patience
from collshim.conformance.pool import Pools
from collshim.conformance.strategies import DRAWN, drawn

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated.*:FutureWarning")

every_collective = pytest.mark.parametrize("collective", shared())
every_transport = pytest.mark.parametrize("transport", TRANSPORTS)


@every_transport
@every_collective
def test_every_two_dialects_meet(pools: Pools, patience: Patience, collective: str, transport: str) -> None:
    for case in [Case(collective, reduce_op=op) for op in reductions(collective)]:
        for pair in pairs(case):
            check(pair, case, patience.run(pools.of(transport, 2), pair, case))


@every_transport
@every_collective
def test_every_two_dialects_meet_beyond_1_kib(
    pools: Pools, patience: Patience, collective: str, transport: str
) -> None:
    """Data up to 1 KiB travels with the check between ranks."""
    case = Case(collective, shape=(2, 300))
    for pair in pairs(case):
        check(pair, case, patience.run(pools.of(transport, 2), pair, case))


@every_transport
@every_collective
def test_every_dialect_meets_another_beyond_2_mb(
    pools: Pools, patience: Patience, collective: str, transport: str
) -> None:
    """Up to 2 MB, counting all ranks, one thread computes all results."""
    case = Case(collective, shape=(2, 140_000))
    by_first: dict[str, list[tuple[Binding, Binding]]] = {}
    for pair in pairs(case):
        by_first.setdefault(pair[0].name, []).append(pair)
    for place, own in enumerate(by_first.values()):
        pair = own[place % len(own)]
        check(pair, case, patience.run(pools.of(transport, 2), pair, case))


@every_transport
@every_collective
@DRAWN
@given(data=st.data())
def test_each_rank_may_speak_another_dialect(
    pools: Pools, patience: Patience, collective: str, transport: str, data: st.DataObject
) -> None:
    size = data.draw(st.sampled_from((3, 4)))
    case = data.draw(drawn(collective, COMMON, size))
    spoken: Sequence[Binding] = data.draw(st.tuples(*[st.sampled_from(dialects(case))] * size))
    check(spoken, case, patience.run(pools.of(transport, size), spoken, case))


def by_the_rule(binding: Binding) -> bool:
    """Return whether the gradient is the derivative of the sum of all ranks' losses."""
    return isinstance(binding, Spelling) and binding.rule == "sum"


@every_transport
@pytest.mark.parametrize("collective", ["all_gather", "all_reduce", "reduce_scatter", "all_to_all", "scatter"])
def test_backwards_meet_where_the_rules_are_the_same(pools: Pools, collective: str, transport: str) -> None:
    case = Case(collective, gradient=True)
    able = [pair for pair in pairs(case) if by_the_rule(pair[0]) and by_the_rule(pair[1])]
    assert able
    for pair in able:
        check(pair, case, pools.of(transport, 2).run(pair, case))


@pytest.mark.parametrize(
    ("alone", "collective", "peer"),
    [
        ("oneflow.comm.gather", "gather", "torch.distributed.gather"),
        ("mindspore.communication.comm_func.all_to_all_v_c", "all_to_all", "torch.distributed.all_to_all"),
    ],
)
def test_alone_spellings_mismatch_on_every_rank(pools: Pools, alone: str, collective: str, peer: str) -> None:
    pair, case = [find(alone), find(peer)], Case(collective)
    assert find(alone).alone
    for answer in pools.of("threads", 2).run(pair, case):
        assert isinstance(answer, Failure), answer
        assert "MismatchError" in answer.classes, answer.message


def gathers_another_shape() -> None:
    """Gather six elements from each rank: one row in torch's dialect, two rows in OneFlow's."""
    if current().rank == 0:
        place("torch.distributed.init_process_group")()
        place("torch.distributed.all_gather")([torch.empty(6), torch.empty(6)], torch.ones(6))
    else:
        place("oneflow.comm.all_gather_into_tensor")(torch.empty(12), torch.ones(2, 3))


def averages_integers() -> None:
    """Average integers: TensorFlow's mean is a sum and a division, torch's is an average."""
    if current().rank == 0:
        place("torch.distributed.init_process_group")()
        average = place("torch.distributed.ReduceOp").AVG
        place("torch.distributed.all_reduce")(torch.ones(2, dtype=torch.int32), average)
    else:
        strategy = place("tensorflow.distribute.MultiWorkerMirroredStrategy")()
        strategy.reduce("MEAN", torch.ones(2, dtype=torch.int32), axis=None)


def gathers_objects_and_arrays() -> None:
    """Gather an object on one rank and an array on the other."""
    if current().rank == 0:
        place("torch.distributed.init_process_group")()
        place("torch.distributed.all_gather_object")([None, None], "text")
    else:
        place("oneflow.comm.all_gather")([None, None], torch.ones(2))


def place(path: str) -> Any:
    return resolve(f"collshim.{path}")


@pytest.mark.parametrize(
    "scenario",
    [gathers_another_shape, averages_integers, gathers_objects_and_arrays],
    ids=lambda scenario: scenario.__name__,
)
def test_documented_mismatches_are_raised(scenario: Callable[[], None]) -> None:
    with pytest.raises(RankError) as caught:
        launch(scenario, 2, timeout=30)
    assert isinstance(caught.value.exception, MismatchError)
