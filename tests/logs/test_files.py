"""A rank's file: what it has, whatever ends the rank, and which files a run makes."""

from __future__ import annotations

import json
import logging
import os
import re
from pathlib import Path
from typing import Any

import pytest

import collshim
from collshim.logs.files import VARIABLE, CallFile, RankLog
from tests.engine.worlds import TRANSPORTS, on_ranks
from tests.logs import programs
from tests.robustness.scripts import run_command


def records(folder: Path, rank: int) -> list[dict[str, Any]]:
    (path,) = folder.glob(f"rank{rank}-*.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_each_rank_keeps_every_call_and_its_end(folder: Path, transport: str) -> None:
    on_ranks(programs.fine, 2, transport)
    for rank in range(2):
        found = records(folder, rank)
        assert [record["event"] for record in found[:2]] == ["world", "group"]
        assert (found[0]["rank"], found[0]["size"], found[1]["ranks"]) == (rank, 2, [0, 1])
        calls = [(record["event"], record["call"]) for record in found if "call" in record]
        assert calls == [("posted", 1), ("done", 1), ("posted", 2), ("freed", 2), ("posted", 3), ("freed", 3)]
        messages = [(record["event"], record["message"]) for record in found if "message" in record]
        assert messages == [("posted", 1), ("done", 1)]
        assert found[2]["bytes"] == 12
        assert 0 < found[3]["seconds"] < 60


def test_killed_rank_leaves_its_calls(folder: Path) -> None:
    with pytest.raises(collshim.RankError):
        collshim.launch(programs.killed, 2, ranks="processes", timeout=200)
    assert [record["event"] for record in records(folder, 1)] == ["world", "group", "posted", "done"]


def test_failed_call_keeps_its_error(folder: Path) -> None:
    with pytest.raises(collshim.RankError):
        collshim.launch(programs.differing, 2, timeout=200)
    for rank in range(2):
        end = records(folder, rank)[-1]
        assert end["event"] == "failed"
        assert end["error"].startswith("MismatchError: all_reduce: ranks disagree on shape")


def test_refused_call_leaves_its_number_to_the_next(folder: Path) -> None:
    collshim.launch(programs.refused, 2, timeout=200)
    assert [(record["event"], record["call"]) for record in records(folder, 0)[3:]] == [("posted", 1), ("refused", 1)]


def test_worlds_of_a_process_share_its_files(folder: Path) -> None:
    for _ in range(2):
        collshim.launch(programs.fine, 2, timeout=200)
    worlds = [record for record in records(folder, 0) if record["event"] == "world"]
    assert len({record["run"] for record in worlds}) == len(worlds) == 2


def test_ranks_of_a_world_name_it_alike(folder: Path) -> None:
    collshim.launch(programs.fine, 2, ranks="processes", timeout=200)
    assert records(folder, 0)[0]["run"] == records(folder, 1)[0]["run"]


def test_new_file_leaves_older_ones(tmp_path: Path) -> None:
    paths = {CallFile(tmp_path, 0).path for _ in range(3)}
    assert paths == set(tmp_path.iterdir())
    assert len(paths) == 3


def test_emptied_folder_gets_new_files(folder: Path) -> None:
    collshim.launch(programs.fine, 2, timeout=200)
    for path in folder.iterdir():
        path.unlink()
    collshim.launch(programs.fine, 2, timeout=200)
    assert records(folder, 1)[0]["event"] == "world"


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_folder_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file"))
    text = "COLLSHIM_LOG_DIR is '.*file', where rank [01] cannot write .*, should be a folder"
    with pytest.raises((collshim.ArgumentValueError, collshim.RankError), match=text):
        collshim.launch(programs.fine, 2, ranks=kind, timeout=200)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is full")
def test_full_disk_ends_the_log_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = CallFile(tmp_path, 0)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, file._file)
    os.close(full)
    with caplog.at_level(logging.WARNING, "collshim"):
        log = RankLog(file, "run", 0, 1)
        log.write("group")
    assert [record.getMessage() for record in caplog.records] == [
        f"the log {file.path} ends here: [Errno 28] No space left on device"
    ]


def notes(caught: pytest.ExceptionInfo[collshim.RankError], capsys: pytest.CaptureFixture[str]) -> str:
    """Return an error's notes, which Python before 3.11 prints at once."""
    return "\n".join(getattr(caught.value, "__notes__", [])) or capsys.readouterr().err.strip()


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_failure_names_the_command(folder: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    with pytest.raises(collshim.RankError) as caught:
        collshim.launch(programs.missing, 2, ranks=kind, timeout=200)
    assert notes(caught, capsys) == f"the ranks' calls: collshim log {folder}"


def test_failure_without_logs_names_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(collshim.RankError) as caught:
        collshim.launch(programs.missing, 2, timeout=200)
    assert not notes(caught, capsys)


def test_run_command_names_the_command_and_shows_the_calls(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("from tests.logs.programs import differing\ndiffering()\n")
    ended = run_command(tmp_path, "run", "-n", "2", "script.py", COLLSHIM_LOG_DIR="logs")
    assert ended.code == 1
    report, _, calls = ended.errors.partition("\n  the ranks' calls: collshim log logs\n")
    assert "ranks disagree" in report
    assert re.search(r"^world  \d+ calls?$", calls, re.MULTILINE)
    assert calls.rstrip().rpartition("\n")[2].startswith("Run 1 of 1: ")


def test_run_command_shows_no_calls_of_an_earlier_run(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("from tests.logs.programs import differing\ndiffering()\n")
    run_command(tmp_path, "run", "-n", "2", "script.py", COLLSHIM_LOG_DIR="logs")
    (tmp_path / "early.py").write_text("raise ValueError\n")
    ended = run_command(tmp_path, "run", "-n", "2", "early.py", COLLSHIM_LOG_DIR="logs")
    assert ended.errors.rstrip().endswith("\n  the ranks' calls: collshim log logs")
