"""The outcomes of cases as a grid, as lines, as JSON and as a page."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

from collshim.conformance.cases import COLLECTIVES
from collshim.conformance.report.causes import causes
from collshim.conformance.report.page import page
from collshim.conformance.report.results import FAIL, MISSING, OTHER, PASS, CaseResult, Grid
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
    assert "· the framework has no such collective" in lines(grid)
    for place in [place for place in grid.cells if place != ("all_gather", "torch", "threads")]:
        del grid.cells[place]
    assert "· the framework has no such collective" not in lines(grid)


def test_failures_with_different_numbers_share_a_cause(grid: Grid) -> None:
    function = grid.cell("reduce", "torch", "processes").function("torch.distributed.reduce")
    for wrong in (-14.0, 2e-05, float("nan")):
        function.cases.append(CaseResult("Case('reduce')", FAIL, f"rank 0: tensor at [0, 1] is {wrong}"))
    function.cases.append(CaseResult("Case('reduce')", FAIL, "rank 1: tensor at [0] is (4, 8)"))
    first = causes(grid)[0]
    assert (first.text, len(first.failures)) == ("rank #: tensor at [#] is #", 3)
    assert first.functions == ["torch.distributed.reduce"]
    text = "\n".join(lines(grid))
    assert text.count("failed: ") == len(causes(grid)) == 3
    assert "  and 2 more for the same cause, of torch.distributed.reduce\n" in text
    shown = _unpacked(page(grid))["causes"]
    assert shown[0] == {"text": "rank #: tensor at [#] is #", "cases": 3, "functions": ["torch.distributed.reduce"]}


def test_obsolete_declaration_is_reported(grid: Grid) -> None:
    grid.stale.append("torch.distributed.reduce: known to deviate, but agrees: gloo leaves partial results")
    assert "unexpected pass: torch.distributed.reduce: known to deviate, but agrees" in "\n".join(lines(grid))


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
