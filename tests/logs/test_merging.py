"""`collshim log`: what it says of a run, its exit code, its table and its JSON."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

import collshim
from collshim.__main__ import main
from collshim.calls.call import Call
from collshim.calls.collective import ALL_TO_ALL, BARRIER, REDUCE, SEND
from collshim.logs.observer import duration, facts_of
from collshim.logs.reading import call_of, read
from collshim.logs.text import show
from collshim.logs.verdict import Verdict
from tests.logs import programs


def run(program: Callable[[], None], size: int = 2) -> None:
    with collshim.options(timeout=5), contextlib.suppress(collshim.RankError):
        collshim.launch(program, size, timeout=200)


def line(program: Callable[[], None], offset: int) -> str:
    return f"programs.py:{program.__code__.co_firstlineno + offset}"


def said(folder: Path) -> str:
    runs = read(folder)
    return Verdict(runs, len(runs)).sentence


def shown(folder: Path, width: int, last: int | None = 20) -> list[str]:
    text, runs = io.StringIO(), read(folder)
    show(Verdict(runs, len(runs)), Console(file=text, width=width, color_system=None), last)
    return text.getvalue().splitlines()


def as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    main(["log", str(folder), "--json"])
    return json.loads(capsys.readouterr().out)


def test_fine_run_is_summed_up(folder: Path) -> None:
    run(programs.fine)
    assert said(folder) == "2 ranks made 4 calls; all are done, and the ranks agree"
    assert main(["log", str(folder)]) == 0


def test_missing_rank_is_named_with_its_last_call(folder: Path) -> None:
    run(programs.missing)
    call = f"call 2 (broadcast(shape (2,), float32, root 0) at {line(programs.missing, 5)} on rank 0)"
    last = f"call 1 (all_reduce) at {line(programs.missing, 3)}"
    assert said(folder) == f"rank 1 never made {call}; it last returned from {last}"
    assert main(["log", str(folder)]) == 1


def test_several_missing_ranks_are_one_range(folder: Path) -> None:
    def rank() -> None:
        if programs.world().rank == 1:
            programs.world().barrier().wait(0.05)

    run(rank, 5)
    assert said(folder).startswith("ranks 0, 2-4 never made call 1 (barrier()")
    assert said(folder).endswith("rank 0 made no call, rank 2 made no call, rank 3 made no call")


def test_differing_ranks_are_named(folder: Path) -> None:
    run(programs.differing, 3)
    assert said(folder) == "call 1: ranks disagree on shape: rank 1 has (3,), the others (2,)"
    site = line(programs.differing, 3)
    assert f"  rank 1: all_reduce(shape (3,), float32, op sum) at {site}" in shown(folder, 120)


def test_rank_that_waits_elsewhere_is_told_so(folder: Path) -> None:
    run(programs.crossed)
    assert "never made call 1" in said(folder)
    assert "call 1 of world/1-0#1 (barrier" in said(folder)


def test_unmatched_message_is_named(folder: Path) -> None:
    run(programs.unmatched)
    send = f"send(shape (5000,), float32, to 1) at {line(programs.unmatched, 4)} on rank 0"
    assert said(folder) == f"rank 1 never made the recv of message 1 ({send}); it made no call"


def test_call_without_a_wait_is_unfinished(folder: Path) -> None:
    with pytest.warns(ResourceWarning, match="was not waited for"):
        run(programs.unfinished)
    programs.kept = None
    assert "is not over on ranks 0, 1: posted at" in said(folder)
    assert main(["log", str(folder)]) == 1


def test_killed_rank_is_absent_and_the_other_waits(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(collshim.RankError):
        collshim.launch(programs.killed, 2, ranks="processes", timeout=200)
    row = as_json(folder, capsys)["groups"][0]["calls"][1]
    assert row["marked"]
    assert row["ranks"]["1"] == {"state": "absent"}
    assert row["ranks"]["0"]["state"] in ("waiting", "failed")


def test_rank_without_a_file_is_not_called_absent(folder: Path) -> None:
    run(programs.fine)
    next(folder.glob("rank1-*")).unlink()
    assert said(folder) == "2 ranks made 4 calls (no log of rank 1); all are done, and the ranks agree"
    assert any("no log" in text for text in shown(folder, 80))


def test_half_a_line_at_the_end_is_skipped(folder: Path) -> None:
    run(programs.fine)
    path = next(folder.glob("rank1-*"))
    path.write_bytes(path.read_bytes()[:-10])
    assert len(read(folder)) == 1


def test_row_of_a_message_has_its_two_ranks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(programs.fine, 3)
    (row,) = [row for row in as_json(folder, capsys)["groups"][0]["calls"] if row["kind"] == "message"]
    assert {rank: of["state"] for rank, of in row["ranks"].items()} == {"0": "done", "1": "done"}


def test_last_run_is_shown_unless_another_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(programs.missing)
    run(programs.fine)
    assert main(["log", str(folder)]) == 0
    assert main(["log", str(folder), "--run", "1"]) == 1
    capsys.readouterr()
    assert main(["log", str(folder), "--run", "3"]) == 2
    assert "--run is 3, should be from 1 to 2" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "text"), [("empty", "no rank has left a log in"), ("none", "there is no folder")])
def test_folder_without_logs_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["log", str(tmp_path / name)]) == 2
    assert text in capsys.readouterr().err


def test_table_shows_the_last_calls(folder: Path) -> None:
    run(programs.many)
    numbers = [text.split()[0] for text in shown(folder, 80) if "barrier()" in text]
    assert numbers == [str(number) for number in range(11, 31)]
    assert len([text for text in shown(folder, 80, None) if "barrier()" in text]) == 30


def test_table_keeps_the_marked_call_among_the_shown(folder: Path) -> None:
    def rank() -> None:
        programs.kept = programs.world().all_reduce(torch.ones(1))
        programs.many()

    with pytest.warns(ResourceWarning, match="was not waited for"):
        run(rank)
    programs.kept = None
    marked = [text for text in shown(folder, 120) if text.startswith("> 1 ")]
    assert len(marked) == 1


@pytest.mark.parametrize(("width", "columns"), [(200, ["rank 0", "rank 7"]), (80, ["ranks 0, 2-7", "rank 1"])])
def test_ranks_that_did_the_same_share_a_column_if_there_is_no_room(
    folder: Path, width: int, columns: list[str]
) -> None:
    run(programs.polled, 8)
    header = next(text for text in shown(folder, width) if " line " in text)
    assert all(column in header for column in columns)
    assert max(map(len, shown(folder, width))) <= width


@pytest.mark.parametrize(
    "call",
    [
        Call(BARRIER),
        Call(REDUCE, (2, 3), torch.bfloat16, "cpu", "premul_sum", 0.5, 0, needs_grad=True),
        Call(ALL_TO_ALL, None, torch.int64, "cuda", sends=((1,), (2,)), expects=(), discovers=True),
        Call(SEND, (), torch.bool, "cpu", root=1, tag=7, content="object", nan="1 of 2"),
    ],
    ids=str,
)
def test_call_survives_its_record(call: Call) -> None:
    assert call_of(json.loads(json.dumps(facts_of(call)))) == call


@pytest.mark.parametrize(("seconds", "text"), [(0.0000213, "0.0213 ms"), (0.25, "250 ms"), (1.5, "1.5 s")])
def test_duration_has_its_unit(seconds: float, text: str) -> None:
    assert duration(seconds) == text
