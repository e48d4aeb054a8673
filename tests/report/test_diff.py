"""``collshim conformance --read`` and ``--diff``: results that were written, shown again and compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from collshim.__main__ import main
from collshim.conformance.report.diff import Change, Comparison, compare
from collshim.conformance.report.results import DEVIATION, FAIL, PASS, CaseResult, Grid
from collshim.conformance.report.saved import load

REDUCE = "torch.distributed.all_reduce"
WRONG = "rank 0: tensor at [0] is 1, should be 2"
NO_HANDLE = "rank 0: returned is None, should be a handle"


def results(**cases: str) -> Grid:
    """Make results of one function: the outcome of each case, or the differences of one that failed."""
    grid = Grid({"line": "mine"})
    function = grid.cell("all_reduce", "torch", "processes").function(REDUCE)
    for case, told in cases.items():
        function.cases.append(
            CaseResult(case, told if told in (PASS, DEVIATION) else FAIL, "" if told == PASS else told)
        )
    return grid


def names(changes: list[Change]) -> list[str]:
    return [change.case for change in changes]


def written(folder: Path, name: str, grid: Grid) -> str:
    (folder / name).write_text(json.dumps(grid.as_json()), encoding="utf-8")
    return str(folder / name)


def test_same_results_are_not_worse() -> None:
    found = compare(results(a=PASS, b=WRONG), results(a=PASS, b=WRONG.replace("1", "7")))
    assert found == Comparison(same=2)
    assert not found.is_worse


def test_newly_failing_case_is_worse() -> None:
    found = compare(results(a=PASS, b=PASS), results(a=PASS, b=WRONG, c=NO_HANDLE))
    assert names(found.newly_failing) == ["b", "c"]
    assert (found.newly_failing[0].old, found.newly_failing[0].new) == ("agrees", WRONG)
    assert found.is_worse


def test_newly_passing_case_is_not_worse() -> None:
    found = compare(results(a=WRONG, b=WRONG), results(a=PASS, b=DEVIATION))
    assert names(found.newly_passing) == ["a", "b"]
    assert not found.is_worse


def test_new_cause_is_worse_and_one_cause_less_is_not() -> None:
    both = f"{NO_HANDLE}\n{WRONG}"
    found = compare(results(a=NO_HANDLE, b=both), results(a=both, b=NO_HANDLE))
    assert (names(found.worse_causes), names(found.other_causes)) == (["a"], ["b"])
    assert found.is_worse
    assert not compare(results(b=both), results(b=NO_HANDLE)).is_worse


def test_cases_in_one_run_only_are_listed() -> None:
    found = compare(results(a=PASS, b=WRONG), results(c=PASS))
    assert (names(found.only_old), names(found.only_new)) == (["a", "b"], ["c"])
    assert not found.is_worse


def test_other_outcome_without_failure_is_listed() -> None:
    found = compare(results(a=PASS), results(a=DEVIATION))
    assert names(found.other_outcomes) == ["a"]
    assert not found.is_worse


def test_newly_missing_function_and_unexpected_pass_are_worse() -> None:
    gone = results()
    gone.functions[0].missing = True
    assert compare(results(), gone).newly_missing == [REDUCE]
    assert compare(results(), gone).is_worse
    stale = results()
    stale.stale.append("f: named in xfails, but agrees")
    assert compare(results(), stale).is_worse


def test_transports_are_compared_separately() -> None:
    other = results(a=WRONG)
    other.cell("all_reduce", "torch", "threads").function(REDUCE).cases.append(CaseResult("a", PASS))
    found = compare(other, results(a=WRONG))
    assert [(change.transport, change.case) for change in found.only_old] == [("threads", "a")]


def test_written_results_are_read_back(grid: Grid, tmp_path: Path) -> None:
    cell = grid.cells["all_gather", "torch", "processes"]
    cases = cell.function("torch.distributed.all_gather").cases
    cases[0] = replace(cases[0], expected=("3", "4"), whose="torch itself")
    read = load(Path(written(tmp_path, "run.json", grid)))
    assert read.cells == grid.cells
    assert json.dumps(read.as_json()) == json.dumps(grid.as_json())


def test_command_compares_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = written(tmp_path, "old.json", results(a=PASS)), written(tmp_path, "new.json", results(a=WRONG))
    written_file = tmp_path / "diff.json"
    assert main(["conformance", "--diff", old, new, "--json", str(written_file)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("worse: 1 newly failing, 0 the same\n\nnewly failing:\n")
    assert f"  {REDUCE}: a (processes)\n    was: agrees\n    is: {WRONG}\n" in out
    told = json.loads(written_file.read_text())
    assert (told["worse"], [change["case"] for change in told["newly_failing"]]) == (True, ["a"])
    assert main(["conformance", "--diff", new, old]) == 0
    assert capsys.readouterr().out.startswith("not worse: 1 newly passing, 0 the same\n")


def test_comparison_lists_every_case_if_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [f"case{number}" for number in range(9)]
    old = written(tmp_path, "old.json", results(**dict.fromkeys(cases, PASS)))
    new = written(tmp_path, "new.json", results(**dict.fromkeys(cases, WRONG)))
    main(["conformance", "--diff", old, new])
    assert f"  {REDUCE}: 8 more cases, listed by `--show cases`\n" in capsys.readouterr().out
    main(["conformance", "--diff", old, new, "--show", "cases"])
    out = capsys.readouterr().out
    assert [f"  {REDUCE}: {case} (processes)\n" in out for case in cases] == [True] * 9


def test_command_shows_written_results_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "run.html"
    assert main(["conformance", "--read", written(tmp_path, "run.json", results(a=WRONG)), "--html", str(page)]) == 1
    assert f"failed: {REDUCE}: a\n" in capsys.readouterr().out
    assert page.exists()
    assert main(["conformance", "--read", written(tmp_path, "run.json", results(a=PASS))]) == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "JSONDecodeError"),
        ("[]", "AttributeError"),
        ('{"worse": false}', "KeyError: 'stale'"),
        ('{"stale": [], "cells": [{}]}', "KeyError: 'collective'"),
        (json.dumps(results(a=PASS).as_json()).replace('"pass"', '"fine"'), "the outcome is 'fine'"),
        (None, "No such file"),
    ],
)
@pytest.mark.parametrize("option", ["--read", "--diff"])
def test_other_file_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, told: str, option: str
) -> None:
    path = tmp_path / "other.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    files = [str(path)] if option == "--read" else [written(tmp_path, "run.json", results(a=PASS)), str(path)]
    assert main(["conformance", option, *files]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert str(path) in error
    assert told in error
    assert len(error.splitlines()) == 1
