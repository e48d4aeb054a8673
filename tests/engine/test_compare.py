"""A table of cases fails and lists every different case, and fails without cases."""

from __future__ import annotations

import pytest

from tests.engine.worlds import compare


def test_every_different_case_is_listed() -> None:
    with pytest.raises(AssertionError, match=r"^second: 2, should be 3\nthird: 3, should be 4$"):
        compare([("first", 1, 1), ("second", 2, 3), ("third", 3, 4)])


def test_table_without_cases_fails() -> None:
    with pytest.raises(AssertionError, match="there are no cases"):
        compare([])


def test_equal_cases_pass() -> None:
    compare([("first", 1, 1)])
