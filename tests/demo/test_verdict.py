"""The comparison of observed and expected results."""

from __future__ import annotations

from typing import Any

import pytest

from collshim.demo.example import Example, Row, Sheet
from collshim.demo.examples import SHEETS
from collshim.demo.verdict import DOCUMENTED, Verdict, judge, read_documented

EXAMPLE = Example(name="sum", call="all_reduce(input)")
ROW = Row(given="[1]", back="tensor", held="[3]", values=[3], dtype="int64")
GOOD: dict[str, Any] = {"values": [[3], [3]], "back": "tensor", "dtype": "int64"}


def _judged(documented: dict[str, Any], *ranks: Row) -> Verdict:
    sheet = Sheet("PyTorch", "", "", ranks=2, start=dict, examples=(EXAMPLE,))
    return judge(sheet, [[[row]] for row in ranks], {"sum": documented})[0]


def test_equal_values_structure_and_dtype_are_good() -> None:
    assert _judged(GOOD, ROW, ROW).good


@pytest.mark.parametrize("change", [{"values": [4]}, {"back": "None"}, {"dtype": "int32"}])
def test_difference_shows_the_expected_value(change: dict[str, Any]) -> None:
    verdict = _judged(GOOD, ROW, ROW._replace(**change))
    assert [result.wanted for result in verdict.results] == ["", "[3], tensor, int64"]


def test_structure_may_differ_between_ranks() -> None:
    root = {"values": [[3], None], "back": ["tensor", "None"], "dtype": "int64"}
    assert _judged(root, ROW, Row("[1]", "None", "None", None, "")).good


def test_hidden_world_counts_too() -> None:
    assert not _judged(GOOD, ROW, ROW, ROW, ROW._replace(values=[4])).good


def test_result_without_expectation_is_not_good() -> None:
    assert not _judged({}, ROW, ROW).good


def test_examples_and_expected_results_match() -> None:
    documented = dict(zip((sheet.framework for sheet in SHEETS), read_documented(SHEETS, DOCUMENTED), strict=True))
    names = {framework: set[str]() for framework in documented}
    for sheet in SHEETS:
        names[sheet.framework] |= {example.name for example in sheet.examples}
    assert names == {framework: set(results) for framework, results in documented.items()}
