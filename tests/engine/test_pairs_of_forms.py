"""Ranks of one call can each give and take in another form."""

from __future__ import annotations

from functools import partial

import pytest

from tests.engine.scenarios.pairs import FORMS, LENGTHS, SIZE, scenarios, unequal_elsewhere
from tests.engine.worlds import CHECKED, compare, outcomes, values_of


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("collective", FORMS)
def test_every_pair_of_forms_matches(transport: str, collective: str, length: str) -> None:
    asked = scenarios(collective, length, transport in CHECKED)
    found = outcomes(asked, SIZE, transport)
    compare((name, values_of(found, name), [True] * SIZE) for name in asked)


def test_equal_parts_match_unequal_lists(transport: str) -> None:
    asked = {name: partial(unequal_elsewhere, length) for name, length in LENGTHS.items()}
    found = outcomes(asked, 3, transport)
    compare((name, values_of(found, name), [True] * 3) for name in asked)
