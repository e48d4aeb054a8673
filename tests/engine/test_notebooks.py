"""Errors of ``launch`` in IPython and notebooks: a few lines, with the cells and lines of the program."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import collshim
from collshim.calls.site import place
from collshim.errors import add_note

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("threads", "processes")
HINT = "(the whole traceback: %env COLLSHIM_FULL_TRACE=1, then %tb)"

CELLS = {
    "imports": "import os, time, torch, collshim",
    "unequal": """\
def unequal():
    comm = collshim.current().communicator
    comm.all_reduce(torch.ones(3 if comm.rank == 1 else 2)).wait()

collshim.launch(unequal, 2, ranks=KIND)""",
    "called later": "collshim.launch(unequal, 4, ranks=KIND)",
    "value": """\
def row(number):
    raise ValueError("no such row")

def rows():
    row(3)

collshim.launch(rows, 1, ranks=KIND)""",
    "missing": """\
def missing():
    comm = collshim.current().communicator
    if comm.rank == 0:
        comm.barrier().wait()

collshim.launch(missing, 2, ranks=KIND)""",
    "late": """\
collshim.launch(time.sleep, 1, ranks=KIND,
                args=(3,), timeout=0.01)""",
    "full": "%env COLLSHIM_FULL_TRACE=1",
    "again": "%tb",
    "fresh": "collshim.launch(rows, 1, ranks=KIND)",
}

SHELL = """
import contextlib, io, json, sys
from IPython.core.interactiveshell import InteractiveShell
shell, printed = InteractiveShell.instance(colors="nocolor"), []
for cell in json.loads(sys.stdin.read()):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        shell.run_cell(cell, store_history=True)
    printed.append(out.getvalue())
print(json.dumps(printed))
"""

Printed = dict[str, list[str]]


def cells_of(kind: str) -> list[str]:
    """Return the cells, the first of which chooses the kind of ranks, so that cells have the numbers 1, 2, 3, ..."""
    first, *others = CELLS.values()
    return [f"{first}\nKIND = {kind!r}", *others]


def in_shell(kind: str, folder: Path) -> Printed:
    """Return the lines that IPython prints for each cell."""
    done = subprocess.run(
        [sys.executable, "-c", SHELL],
        input=json.dumps(cells_of(kind)),
        env={**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    printed = json.loads(done.stdout.splitlines()[-1])
    return {name: text.splitlines() for name, text in zip(CELLS, printed, strict=True)}


def in_kernel(kind: str, folder: Path) -> Printed:
    """Return the lines of the error that a notebook shows below each cell."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    cells = [nbformat.v4.new_code_cell(cell) for cell in cells_of(kind)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    own = {"PYTHONPATH": str(ROOT), "JUPYTER_RUNTIME_DIR": str(folder), "IPYTHONDIR": str(folder)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in own.items():
            patch.setenv(name, value)
        nbclient.NotebookClient(notebook, timeout=100, allow_errors=True, kernel_name="python3").execute()
    return {name: _lines(cell.outputs) for name, cell in zip(CELLS, notebook.cells, strict=True)}


def _lines(outputs: list[Any]) -> list[str]:
    texts = ["\n".join(output.traceback) for output in outputs if output.output_type == "error"]
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(texts)).splitlines()


@pytest.fixture(scope="module", params=[(place, kind) for place in (in_shell, in_kernel) for kind in KINDS])
def printed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Printed:
    pytest.importorskip("IPython")
    place, kind = request.param
    found: Printed = place(kind, tmp_path_factory.mktemp("notebook"))
    return found


def test_mismatch_shows_the_calls_and_their_cells(printed: Printed) -> None:
    first, *rest = printed["unequal"]
    told = r"RankError: rank [01] of 2 failed: MismatchError: all_reduce: ranks disagree on shape: rank 0 has .*"
    assert re.fullmatch(told, first)
    assert rest == [
        "  rank 0: all_reduce(shape (2,), float32, op sum) at cell 2 line 3",
        "  rank 1: all_reduce(shape (3,), float32, op sum) at cell 2 line 3",
        HINT,
    ]


def test_equal_calls_share_a_line(printed: Printed) -> None:
    assert printed["called later"][1:] == [
        "  ranks 0, 2, 3: all_reduce(shape (2,), float32, op sum) at cell 2 line 3",
        "  rank 1: all_reduce(shape (3,), float32, op sum) at cell 2 line 3",
        HINT,
    ]


def test_error_of_the_program_shows_its_lines(printed: Printed) -> None:
    assert printed["value"] == [
        "RankError: rank 0 of 1 failed: ValueError: no such row",
        '  at cell 4 line 2: raise ValueError("no such row")',
        "  called at cell 4 line 5: row(3)",
        HINT,
    ]


def test_missing_rank_shows_the_line_of_the_call(printed: Printed) -> None:
    first, *rest = printed["missing"]
    assert first.startswith(
        "RankError: rank 0 of 2 failed: PeerError: barrier() at cell 5 line 4: 1 of 2 ranks did not"
    )
    assert rest == ["  at cell 5 line 4: comm.barrier().wait()", HINT]


def test_failure_without_an_exception_shows_the_call_of_launch(printed: Printed) -> None:
    assert printed["late"][1:] == ["  at cell 6 line 1: collshim.launch(time.sleep, 1, ranks=KIND,", HINT]


def test_whole_traceback_is_shown_on_demand(printed: Printed) -> None:
    assert any("Traceback (most recent call last)" in line for line in printed["again"])
    assert any("launch.py" in line for line in printed["again"])
    assert HINT not in printed["again"]


def test_whole_traceback_has_the_lines_in_the_rank(printed: Printed) -> None:
    whole = "\n".join(printed["fresh"])
    assert 'raise ValueError("no such row")' in whole
    assert "_rank(self, rank)" in whole or "in _main" in whole, whole


@pytest.mark.parametrize("names", [None, {}, {"format_code_name": lambda path: None}])
def test_cell_whose_number_is_unknown_is_shown_as_a_file(names: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = None if names is None else SimpleNamespace(compile=SimpleNamespace(**names))
    monkeypatch.setitem(sys.modules, "IPython", cast("Any", SimpleNamespace(get_ipython=lambda: shell)))
    assert place("/tmp/ipykernel_1/23.py", 4) == "23.py:4"


def shown(fn: Callable[..., Any], *args: Any, size: int = 1, ranks: str = "threads") -> list[str]:
    """Return the lines that IPython would print for the failure of the function."""
    with pytest.raises(collshim.RankError) as caught:
        collshim.launch(fn, size, ranks=ranks, args=args)
    lines: list[str] = caught.value._render_traceback_()
    return lines


def descend(levels: int) -> None:
    if not levels:
        raise RecursionError("too deep")
    descend(levels - 1)


def test_deep_calls_show_the_innermost_and_the_outermost_lines() -> None:
    name, first = Path(__file__).name, descend.__code__.co_firstlineno
    assert shown(descend, 5) == [
        "RankError: rank 0 of 1 failed: RecursionError: too deep",
        f'  at {name}:{first + 2}: raise RecursionError("too deep")',
        f"  called at {name}:{first + 3}: descend(levels - 1)",
        f"  called at {name}:{first + 3}: descend(levels - 1)",
        HINT,
    ]


def parse() -> None:
    json.loads("{")


def test_lines_of_other_libraries_are_left_out() -> None:
    line = f"  at {Path(__file__).name}:{parse.__code__.co_firstlineno + 1}: json.loads"
    assert [text.partition("(")[0] for text in shown(parse)[1:-1]] == [line]


class LocalError(Exception):
    def __reduce__(self) -> Any:
        raise TypeError("cannot be sent")


def fail() -> None:
    raise LocalError("mine")


@pytest.mark.parametrize("ranks", KINDS)
def test_exception_that_cannot_be_sent_shows_its_line(ranks: str) -> None:
    line = fail.__code__.co_firstlineno + 1
    assert shown(fail, ranks=ranks)[1:-1] == [f'  at {Path(__file__).name}:{line}: raise LocalError("mine")']


def test_lines_of_a_message_are_all_kept() -> None:
    assert collshim.RankError("a\nb\n\nb", 0, None)._render_traceback_()[:-1] == ["RankError: a", "b", "", "b"]


def test_a_line_that_only_begins_like_a_shown_one_is_kept() -> None:
    failure = collshim.RankError("a\n  rank 0: barrier() at cell 2 line 13", 0, None)
    failure.lines = ["cell 2 line 1: f()"]
    assert "  at cell 2 line 1: f()" in failure._render_traceback_()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no notes")
def test_notes_are_shown() -> None:
    add_note(failure := collshim.RankError("a", 0, None), "a note")
    assert failure._render_traceback_() == ["RankError: a", "a note", HINT]


def test_ipython_formats_the_traceback_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_FULL_TRACE", "1")
    assert not hasattr(collshim.RankError("a", 0, None), "_render_traceback_")
