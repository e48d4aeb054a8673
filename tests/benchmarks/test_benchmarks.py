"""The benchmarks run and their results are evaluated correctly; no test limits a time."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.benchmarks import __main__ as benchmarks
from tests.benchmarks import goals
from tests.benchmarks.measure import concatenate, in_turns, slower_beyond_noise, slowest
from tests.benchmarks.one_host import SHIM, Times
from tests.benchmarks.operations import COLLECTIVES, OPERATIONS, OPS
from tests.benchmarks.page import BEGIN, END, write

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    found = tmp_path / "page.md"
    found.write_text(f"before\n{BEGIN}\nold figures\n{END}\nafter\n", encoding="utf-8")
    return found


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make as few repetitions as possible."""
    monkeypatch.setattr(benchmarks, "QUICK", benchmarks.QUICK._replace(share=0.0))


@pytest.mark.usefixtures("brief")
def test_quick_run_prints_and_writes_every_section(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ops = ("all_reduce", "all_to_all", "reduce")
    benchmarks.main(["--quick", "--ops", *ops, "--sizes", "4 KB", "--write", str(page)])
    printed, written = capsys.readouterr().out, page.read_text(encoding="utf-8")
    assert [*_sections(printed)] == [
        "Processes of one host, check on, 2 ranks",
        "A rank that waits, 2 ranks",
        "Making a group of processes",
        "Tests on ranks",
        "Host time, check off",
        "all_reduce, 2 ranks",
        "all_to_all, 2 ranks",
        "The check's price, 2 ranks",
        "Small calls between threads",
        "Other calls of the engine, 2 ranks",
        "torch.distributed over gloo, check off, 2 ranks",
        "Forms of 4 KB, 2 ranks",
        "Steps of DistributedDataParallel, 2 ranks",
        "Goals",
    ]
    assert written == f"before\n{BEGIN}\n\n{printed.strip()}\n\n{END}\nafter\n"


@pytest.mark.usefixtures("brief")
def test_every_form_and_collective_is_covered(capsys: pytest.CaptureFixture[str]) -> None:
    benchmarks.main(["--quick", "--sections", "host", "calls", "adapter", "--sizes", "64 B"])
    host, calls, adapter, goals = _sections(capsys.readouterr().out).values()
    of_torch = [name for name, operation in OPERATIONS.items() if operation.torch is not None]
    assert host == [name for name, operation in OPERATIONS.items() if operation.fake]
    assert calls == [name for name, operation in OPERATIONS.items() if operation.engine and name not in OPS]
    assert adapter == [name for name in of_torch if OPERATIONS[name].gloo]
    subject = "collshim.torch / torch.distributed, p10: "
    assert [goal.removeprefix(subject) for goal in goals if goal.startswith(subject)] == [
        name for name in of_torch if name in COLLECTIVES
    ]


def _sections(printed: str) -> dict[str, list[str]]:
    """Return the first column of each table, by its heading."""
    columns: dict[str, list[str]] = {}
    for heading, *lines in (section.splitlines() for section in printed.split("### ")[1:]):
        columns[heading] = [line.split("|")[1].strip() for line in lines if line.startswith("|")][2:]
    return columns


def test_page_without_markers_is_refused_and_unchanged(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("words", encoding="utf-8")
    with pytest.raises(ValueError, match="has no place for figures"):
        write(page, ["figures"])
    assert page.read_text(encoding="utf-8") == "words"


def test_goals_of_one_host_take_the_worst_size_and_the_faster_mpi() -> None:
    def times(mpi: str, small: float, large: float) -> Times:
        samples: dict[str, list[float]] = {"gloo": [small], SHIM: [1.0], mpi: [large]}
        return {"all_reduce": {4: samples, 1 << 12: {"gloo": [50.0], SHIM: [1.0], mpi: [4.0]}}}

    found = list(goals.goals(goals.Findings({}, [times("a", 41.0, 2.0), times("b", 45.0, 1.0)])))
    assert [(goal.measured, goal.reached) for goal in found] == [
        ("4 B 41.0, 4 KB 50.0", True),
        ("4 B 1.0, 4 KB 4.0", True),
        ("2.00", True),
    ]


def test_docs_page_has_markers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text((ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8"), encoding="utf-8")
    write(page, ["figures"])
    assert f"{BEGIN}\n\nfigures\n\n{END}" in page.read_text(encoding="utf-8")


def test_contenders_alternate_with_a_barrier_before_each_call() -> None:
    calls: list[str] = []
    contenders = {name: partial(calls.append, name) for name in "ab"}
    times = in_turns(contenders, 2, partial(calls.append, "|"))
    assert "".join(calls) == "ab|a|b|b|a"
    assert {name: len(found) for name, found in times.items()} == {"a": 2, "b": 2}


def test_call_ends_when_its_last_rank_is_done() -> None:
    assert slowest([{"a": [1.0, 5.0]}, {"a": [2.0, 3.0]}]) == {"a": [2.0, 5.0]}


def test_blocks_are_concatenated() -> None:
    assert concatenate([{"a": [1.0]}, {"a": [2.0]}]) == {"a": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("mine", "others", "slower"),
    [
        ([1.1] * 10, [1.0] * 10, True),
        ([1.04] * 10, [1.0] * 10, False),  # within the margin
        ([1.1] * 5 + [0.9] * 5, [1.0] * 10, False),  # faster as often as slower
        ([2.0] * 3, [1.0] * 3, False),  # too few to decide
        ([1.0] * 10, [1.0] * 10, False),
        ([0.5] * 10, [1.0] * 10, False),
    ],
)
def test_slower_beyond_noise(mine: list[float], others: list[float], slower: bool) -> None:
    assert slower_beyond_noise({"mine": mine, "others": others}, "mine", "others") is slower
