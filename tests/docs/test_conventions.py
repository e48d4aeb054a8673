"""The tables and examples of docs/conventions.md and docs/differences/."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from collshim import RankError
from collshim.conformance.bindings import find
from collshim.conformance.conventions import example, ran
from collshim.conformance.conventions.evidence import of_paths
from collshim.conformance.conventions.facts import Facts, of_collective
from collshim.conformance.conventions.pages import pages
from collshim.conformance.conventions.shapes import symbolic
from collshim.conformance.conventions.sheets import Sheet, sheets
from collshim.conformance.conventions.side_by_side import first
from collshim.frameworks import FRAMEWORKS


@pytest.mark.parametrize(
    ("shape", "letters"),
    [((5, 7), "(a, b)"), ((15, 7), "(n*a, b)"), ((3, 5, 7), "(n, a, b)"), ((105,), "(n*a*b,)"), ((1,), "(1,)")],
)
def test_shapes_are_written_in_letters(shape: tuple[int, ...], letters: str) -> None:
    assert symbolic(shape) == letters


def _facts(name: str) -> Facts:
    return next(one for one in of_collective(find(name).collective) if one.binding.name == name)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("torch.distributed.all_reduce", "torch.distributed.all_reduce(tensor, op)"),
        ("torch.distributed.isend[tag]", "torch.distributed.isend(tensor, dst, tag), irecv(tensor, src, tag)"),
        ("oneflow.comm.gather[everywhere]", "oneflow.comm.gather(tensor, gather_list, dst)"),
        ("megengine.functional.distributed.all_gather", "megengine.functional.distributed.all_gather(inp, axis)"),
    ],
)
def test_call_shows_its_arguments(name: str, call: str) -> None:
    assert _facts(name).call == call


@pytest.mark.parametrize(
    ("name", "subject", "told"),
    [
        ("torch.distributed.all_gather", "gradient", "no"),
        ("oneflow.comm.all_gather", "gradient", "n"),
        ("oneflow.comm.all_gather", "memory", "the list's entries are replaced"),
        ("torch.distributed.nn.functional.broadcast", "gradient", "root: n; others: 0"),
        ("mindspore.communication.comm_func.broadcast", "gradient", "1"),
        ("mindspore.communication.comm_func.reduce", "on other ranks", "`(1,)` of arbitrary values"),
        ("megengine.functional.distributed.reduce_sum", "returns", "root: a tensor; others: None"),
        ("megengine.functional.distributed.gather", "the root is", "the group's first rank"),
        ("torch.distributed.reduce[group_dst]", "the root is", "a rank in the group"),
    ],
)
def test_facts_match_the_framework(name: str, subject: str, told: str) -> None:
    assert _facts(name).rows[subject] == told


def test_deviating_adapter_stops_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    binding: Any = find("torch.distributed.all_gather")
    monkeypatch.setattr(ran, "bindings", lambda: (replace(binding, memory="replaced"),))
    with pytest.raises(AssertionError, match=r"all_gather through torch.distributed.all_gather: .*rank 0 of 3"):
        ran.calls.__wrapped__()


def test_failing_example_stops_the_pages() -> None:
    with pytest.raises(RankError, match="no rank"):
        example.outcome("oneflow", "raise ValueError('no rank')\nrank\n")


def test_outcome_shows_inputs_results_and_changes() -> None:
    code = "x = torch.tensor([1]) + rank\nother = torch.tensor([5])\ndist.broadcast(x, 0)\n"
    assert example.outcome("torch", code) == (
        "| rank | `x` before | returns | `x` after |\n| --- | --- | --- | --- |\n"
        "| 0 | `[1]` | `None` | `[1]` |\n| 1 | `[2]` | `None` | `[1]` |\n"
    )


@pytest.mark.parametrize("sheet", [pytest.param(sheet, id=sheet.name) for sheet in sheets()])
def test_every_collective_has_a_short_example(sheet: Sheet) -> None:
    there = [framework for framework, one in first(sheet.collectives[0]).items() if not one.missing]
    lengths = {framework: len(sheet.examples[framework].splitlines()) for framework in there}
    assert all(1 <= length <= 4 for length in lengths.values())


@pytest.mark.parametrize(
    ("framework", "path", "short"),
    [
        ("oneflow", "oneflow.comm.all_gather", r"0\.9\.0: \d\d"),
        ("megengine", "megengine.functional.distributed.all_gather", r"1\.13\.0: \d\d converted"),
        ("oneflow", "oneflow.comm.unheard_of", r"0\.9\.0: none"),
    ],
)
def test_recorded_calls_are_counted_with_their_source(framework: str, path: str, short: str) -> None:
    assert re.fullmatch(short, of_paths(framework, path).short)


def test_every_pair_of_frameworks_has_pages() -> None:
    pairs = len(FRAMEWORKS) * (len(FRAMEWORKS) - 1) // 2
    assert len(pages()) == 2 + pairs + len(sheets())
