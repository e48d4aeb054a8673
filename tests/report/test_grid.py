"""The outcomes of cases as a grid, as lines, as JSON and as a page."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

import pytest

from collshim.conformance.cases import COLLECTIVES
from collshim.conformance.report.page import page
from collshim.conformance.report.results import DEVIATION, FAIL, MISSING, OTHER, PASS, CaseResult, Grid
from collshim.conformance.report.terminal import lines, table
from collshim.frameworks import FRAMEWORKS
from collshim.launching.kinds import RANK_KINDS


def test_cell_shows_its_worst_case(grid: Grid) -> None:
    found = {place: cell.outcome for place, cell in grid.cells.items()}
    assert found == {
        ("all_gather", "torch", "threads"): "deviation",
        ("all_gather", "torch", "processes"): "fail",
        ("barrier", "oneflow", "threads"): "beyond",
        ("barrier", "torch", "threads"): "missing",
    }


def test_missing_function_is_counted_and_hides_no_others(grid: Grid) -> None:
    cell = grid.cells["barrier", "torch", "threads"]
    cell.function("torch.distributed.barrier").cases.append(CaseResult("Case('barrier')", PASS))
    assert (cell.outcome, cell.missing) == (PASS, 1)


def test_terminal_shows_marks_and_counts(grid: Grid) -> None:
    assert list(table(grid)) == [
        "                  torch          oneflow",
        "            t p cases rec mis  t cases rec",
        "all_gather  ≈ ✗     3   1      ·",
        "barrier     – ·             1  ○         1",
        "all                 3   1   1            1",
    ]


def test_missing_and_failed_functions_are_listed_below(grid: Grid) -> None:
    text = "\n".join(lines(grid))
    assert "missing of torch.distributed: barrier" in text
    assert "Case('all_gather', seed=3)\n  rank 1: output is (4, 8) float32, should be (2, 8) float32" in text
    counts = "2 agree, 1 failed, 1 known deviation, 1 unsupported upstream, 1 function missing"
    assert text.endswith(f"\n3 cases and 2 recorded calls:\n{counts}")


def test_legend_has_the_marks_that_are_used(grid: Grid) -> None:
    assert "· the framework lacks the collective" in lines(grid)
    for place in [place for place in grid.cells if place != ("all_gather", "torch", "threads")]:
        del grid.cells[place]
    assert "· the framework lacks the collective" not in lines(grid)


def test_obsolete_declaration_is_reported(grid: Grid) -> None:
    grid.stale.append("torch.distributed.reduce: known to deviate, but agrees: gloo leaves partial results")
    assert "unexpected pass: torch.distributed.reduce: known to deviate, but agrees" in "\n".join(lines(grid))


def test_verdict_is_first_and_the_grid_before_the_causes(grid: Grid) -> None:
    grid.about["subject"] = "mine"
    text = list(lines(grid))
    assert text[0] == "Failed: 1 of 5 cases of mine differ, in 1 function, with wrong results."
    assert text.index("            t p cases rec mis  t cases rec") < text.index(
        "failed: torch.distributed.all_gather: Case('all_gather', seed=3)"
    )
    page_text = page(grid)
    assert page_text.index('id="verdict"') < page_text.index('id="grid"') < page_text.index('id="causes"')
    assert _unpacked(page_text)["verdict"] == text[0]


def test_verdict_of_a_run_without_failures() -> None:
    grid = Grid({"subject": "mine"})
    function = grid.cell("barrier", "torch", "threads").function("f")
    function.cases.append(CaseResult("Case('barrier')", PASS))
    assert next(lines(grid)) == "Passed: no case of mine differs."
    function.cases.append(CaseResult("Case('barrier', size=3)", DEVIATION, "a reason", whose="torch itself"))
    assert next(lines(grid)) == "Passed: no case of mine differs, but for 1 known deviation."
    grid.stale.append("f: named in xfails, but agrees")
    assert next(lines(grid)) == "Failed: 1 unexpected pass of mine."


def test_legend_says_whose_known_deviations_are(grid: Grid) -> None:
    cases = grid.cell("all_gather", "torch", "processes").function("torch.distributed.all_gather").cases
    cases.append(CaseResult("Case('all_gather', seed=4)", DEVIATION, "a reason", whose="torch itself"))
    cases.append(CaseResult("Case('all_gather', seed=5)", DEVIATION, "named", whose="mine, named in xfails"))
    assert "≈ known deviation: 1 of torch itself, 1 of mine, named in xfails" in lines(grid)


def test_frameworks_beyond_the_width_follow_below(grid: Grid) -> None:
    assert list(table(grid, 40)) == [
        "                  torch",
        "            t p cases rec mis",
        "all_gather  ≈ ✗     3   1",
        "barrier     – ·             1",
        "all                 3   1   1",
        "",
        "              oneflow",
        "            t cases rec",
        "all_gather  ·",
        "barrier     ○         1",
        "all                   1",
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_only_cases_and_differences_exceed_the_width(grid: Grid, width: int) -> None:
    text = list(lines(grid, width))[:-1]  # the counts at the end are not wrapped
    assert [line for line in text if len(line) > width and "Case(" not in line and "rank 1" not in line] == []


def test_page_shows_what_was_expected(grid: Grid) -> None:
    failed = CaseResult("Case('reduce')", FAIL, "rank 0: tensor at [0] is 1, should be 2", expected=("2",))
    grid.cell("reduce", "torch", "processes").function("torch.distributed.reduce").cases.append(failed)
    data = _unpacked(page(grid))
    told = next(cell for cell in data["cells"] if cell["row"] == "reduce")["functions"][0]["cases"][0]
    assert [data["texts"][number] for number in told[7]] == ["2"]


def test_page_has_an_example_of_each_cause(grid: Grid) -> None:
    (cause,) = _unpacked(page(grid))["causes"]
    assert cause["text"] == "wrong values of torch.distributed.all_gather"
    assert cause["example"] == {
        "cell": ["all_gather", "torch", "processes"],
        "function": "torch.distributed.all_gather",
        "case": "Case('all_gather', seed=3)",
        "lines": ["rank 1: output is (4, 8) float32, should be (2, 8) float32 </script>"],
    }


def test_five_dialects_fit_into_100_columns() -> None:
    grid = Grid({})
    for place in ((row, name, what) for row in (*COLLECTIVES, OTHER) for name in FRAMEWORKS for what in _TRANSPORTS):
        function = grid.cell(*place).function("f")
        function.cases += [CaseResult("Case('barrier')", PASS)] * 150
        function.recorded += [CaseResult("f/a@2", PASS)] * 9
    for name in ("g", "h"):
        grid.cell("barrier", "mindspore", "threads").function(name).missing = True
    assert max(map(len, lines(grid))) <= 100


_TRANSPORTS = RANK_KINDS


def test_json_has_every_case_with_inputs_and_answers(grid: Grid) -> None:
    found = json.loads(json.dumps(grid.as_json()))
    cell = next(one for one in found["cells"] if one["outcome"] == FAIL)
    assert cell["count"] == {"cases": {"fail": 1}, "recorded": {}, "missing": 0}
    told = cell["functions"][0]["cases"][0]
    assert (told["case"], told["inputs"], told["answers"]) == ("Case('all_gather', seed=3)", ["1", "2"], ["3", "3"])


def test_page_holds_every_case_without_outside_requests(grid: Grid) -> None:
    text = page(grid)
    assert re.findall(r"(?:src|href)\s*=\s*\"(?!#|data:)|https?://|@import|url\(", text) == []
    data = _unpacked(text)
    cases = [told for cell in data["cells"] for one in cell["functions"] for told in (*one["cases"], *one["recorded"])]
    assert len(cases) == 5
    assert "Case('all_gather', seed=3)" in {data["texts"][told[0]] for told in cases}


def test_answer_text_cannot_close_the_script(grid: Grid) -> None:
    assert page(grid).count("</script>") == 2


def test_page_lists_missing_functions(grid: Grid) -> None:
    cell = next(one for one in _unpacked(page(grid))["cells"] if one["outcome"] == MISSING)
    assert [(one["name"], one["missing"]) for one in cell["functions"]] == [("torch.distributed.barrier[async]", True)]


def _unpacked(text: str) -> dict[str, Any]:
    packed = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', text)
    assert packed is not None
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    return found
