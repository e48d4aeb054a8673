"""Tables keyed by the records of collectives have exactly the right records."""

from __future__ import annotations

import pytest

from collshim import autograd
from collshim.calls.collective import BARRIER, COLLECTIVES, MESSAGES, Collective
from collshim.transports import compute
from collshim.transports.processes import gloo

RECORDS = {*COLLECTIVES.values()}
OF_A_GROUP = RECORDS - {*MESSAGES}
MOVING = {record for record in RECORDS if record.gives != "nothing" or record.gets != "nothing"}
"""The records that a gradient flows through."""


def names(records: set[Collective]) -> set[str]:
    return {record.name for record in records}


def test_every_group_collective_is_computed() -> None:
    reductions = {record for record in RECORDS if record.reduces}
    assert names({*compute._MOVEMENTS}) == names(OF_A_GROUP - reductions)


def test_every_group_collective_has_a_transfer() -> None:
    assert names({*gloo._TRANSFERS}) == names(OF_A_GROUP & MOVING)


def test_every_moving_collective_has_a_gradient() -> None:
    assert names({*autograd._RULES}) == names(MOVING)


def test_only_the_barrier_moves_nothing() -> None:
    assert names(RECORDS - MOVING) == {BARRIER.name}


@pytest.mark.parametrize("record", MESSAGES, ids=lambda record: record.name)
def test_message_is_one_way(record: Collective) -> None:
    assert (record.gives == "nothing") != (record.gets == "nothing")
