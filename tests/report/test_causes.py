"""The causes of failures, and the lines that show them."""

from __future__ import annotations

import re

from collshim.conformance.report.causes import MEMORY, REFUSAL, RETURNED, VALUES, causes
from collshim.conformance.report.failures import CASES, failures
from collshim.conformance.report.results import FAIL, PASS, CaseResult, Grid

REDUCE, GATHER = "torch.distributed.all_reduce", "torch.distributed.gather"
WRONG = "rank 1: tensor at [1] is 4.0, should be 5.0: expected [3.0, 5.0] float32, got [3.0, 4.0] float32"
NO_HANDLE = "rank 0: returned is None, should be a handle"
NO_MEMORY = "rank 0: that tensor keeps its memory is False, should be True"


def failing(*told: tuple[str, str, str]) -> Grid:
    """Make a grid of failed cases: the function, the case and the differences; those without any agree."""
    grid = Grid({})
    for name, case, why in told:
        collective = name.rpartition(".")[2].partition("[")[0]
        function = grid.cell(collective, "torch", "processes").function(name)
        function.cases.append(CaseResult(case, FAIL if why else PASS, why))
    return grid


def kinds(grid: Grid) -> list[tuple[int, int]]:
    """Return the kind of each cause, and the number of its cases."""
    return [(cause.kind, len(cause.failures)) for cause in causes(grid)]


def shown(grid: Grid, **options: str) -> list[str]:
    return list(failures(grid, **options))  # type: ignore[arg-type]


def test_wrong_values_come_before_flags_whatever_their_number() -> None:
    several = [(GATHER, f"Case('gather', seed={seed})", NO_HANDLE) for seed in range(3)]
    several += [(GATHER, f"Case('gather', seed={seed})", NO_MEMORY) for seed in range(4, 9)]
    refused = (GATHER, "Case('gather', fault='x')", "rank 0: the exception is none, should be TypeError")
    grid = failing(*several, refused, (REDUCE, "Case('all_reduce')", WRONG))
    assert kinds(grid) == [(VALUES, 1), (RETURNED, 3), (MEMORY, 5), (REFUSAL, 1)]


def test_case_counts_for_each_of_its_causes() -> None:
    grid = failing(
        (f"{REDUCE}[async]", "Case('all_reduce')", f"{NO_HANDLE}\n{WRONG}"), (REDUCE, "Case('all_reduce')", WRONG)
    )
    assert kinds(grid) == [(VALUES, 2), (RETURNED, 1)]


def test_dtypes_and_forms_of_a_function_share_a_cause() -> None:
    grid = failing(
        (REDUCE, "Case('all_reduce', dtype='int64')", "rank 0: tensor at [0] is 4, should be 5"),
        (f"{REDUCE}[async]", "Case('all_reduce', dtype='float64')", "rank 1: tensor at [0, 1] is 4.0, should be nan"),
        (REDUCE, "Case('all_reduce', dtype='bool')", "rank 1: tensor at [0, 1] is True, should be False"),
    )
    assert kinds(grid) == [(VALUES, 3)]


def test_exceptions_that_name_dtypes_share_a_cause() -> None:
    whys = [
        f"rank 0: the exception is RuntimeError: no kernel for {dtype}, should be none"
        for dtype in ("Half", "torch.int8")
    ]
    assert len(causes(failing(*((REDUCE, f"Case('all_reduce', seed={len(why)})", why) for why in whys)))) == 1


def test_hang_of_other_ranks_is_no_cause_of_its_own() -> None:
    hung = "rank 0: the exception is NoAnswer: rank 0 of 2 did not answer in time (4 s), should be none"
    raised = "rank 1: the exception is KeyError: 'x'\nat a line, should be none"
    (cause,) = causes(
        failing((REDUCE, "Case('all_reduce')", f"{hung}\n{raised}\nTraceback (most recent call last):\n  x"))
    )
    assert cause.text == "the exception is KeyError: 'x' at a line, should be none"


def test_cause_names_the_parameters_that_tell_its_cases_from_others() -> None:
    grid = failing(
        (REDUCE, "Case('all_reduce', dtype='int64', layout='strided')", WRONG),
        (REDUCE, "Case('all_reduce', dtype='float64')", WRONG),
        (REDUCE, "Case('all_reduce', layout='strided')", ""),
    )
    assert [cause.only for cause in causes(grid)] == ["dtype='float64' or 'int64'"]


def test_cause_of_every_case_names_no_parameters() -> None:
    grid = failing((REDUCE, "Case('all_reduce', dtype='int64')", WRONG))
    assert [cause.only for cause in causes(grid)] == [""]


def test_differences_of_known_deviations_are_no_causes() -> None:
    why = f"{NO_MEMORY}\nbeside a known deviation of torch itself: it is so\n{WRONG}"
    assert kinds(failing((REDUCE, "Case('all_reduce')", why))) == [(MEMORY, 1)]


def test_example_is_the_simplest_case_with_its_values() -> None:
    grid = failing(
        (f"{REDUCE}[async]", "Case('all_reduce')", WRONG),
        (REDUCE, "Case('all_reduce', dtype='int8', size=3)", WRONG),
        (REDUCE, "Case('all_reduce', size=3)", WRONG),
    )
    assert shown(grid)[:6] == [
        "failed: torch.distributed.all_reduce: Case('all_reduce', size=3)",
        "  rank 1: tensor at [1] is 4.0, should be 5.0",
        "    expected [3.0, 5.0] float32",
        "    got      [3.0, 4.0] float32",
        "  1 difference in this case, only on rank 1",
        "  2 of 2 cases failed, 1 of 1 of its form [async]",
    ]


def test_every_failed_function_has_an_example() -> None:
    names = [f"torch.distributed.f{number}" for number in range(40)]
    text = shown(failing(*((name, "Case('all_reduce')", WRONG) for name in names)))
    assert [line for line in text if line.startswith("failed: ")] == [
        f"failed: {name}: Case('all_reduce')" for name in names
    ]
    assert sum(line.startswith("- ") for line in text) == len(names)
    assert not re.search(r"#", "\n".join(text))


def test_every_failed_case_is_listed_if_asked_for() -> None:
    grid = failing(*((REDUCE, f"Case('all_reduce', seed={seed})", WRONG) for seed in range(50)))
    assert any("`--show cases`" in line for line in shown(grid))
    text = shown(grid, show=CASES)
    assert [f"    {REDUCE}: Case('all_reduce', seed={seed})" in text for seed in range(50)] == [True] * 50
    assert not any("`--show cases`" in line for line in text)
