"""The programs of README.md and of the introductory pages run unchanged."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/index.md", "docs/start.md", "docs/hangs.md", "docs/porting.md")
SECTIONS = {"MindSpore": "mindspore", "OneFlow": "oneflow", "TensorFlow": "tensorflow", "MegEngine": "megengine"}
RANKS = """\
import collshim, sys
code = compile(open(sys.argv[1]).read(), sys.argv[1], "exec")
line = lambda *parts: sys.stdout.write(" ".join(map(str, parts)) + chr(10))  # in one piece, whoever prints meanwhile
with collshim.stand_in(*sys.argv[2:]):
    collshim.launch(lambda: exec(code, {"__name__": "__main__", "print": line}), 2)
"""


def blocks(page: str) -> list[tuple[str, str]]:
    """Return the page's programs, each with its heading."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(re.findall(r"^#+ (.+)$", text[: one.start()], re.MULTILINE)[-1], one[1]) for one in found]


PROGRAMS = {f"{page}, {place}": code for page in PAGES[:-1] for place, (_, code) in enumerate(blocks(page))}
PAIRS = dict(blocks(PAGES[-1]))


def run(folder: Path, code: str, *before: str, after: tuple[str, ...] = ()) -> str:
    (folder / "program.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, *before, "program.py", *after],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


NEEDS_RANKS = re.compile(r"init_process_group|get_rank|\.comm\.|Strategy\(")
"""Names in programs that do nothing without other ranks, unless they start them."""

STARTS_RANKS = re.compile(r"collshim\.launch\(|mark\.ranks|@dist\.launcher\(n_gpus|MirroredStrategy\(\[")


OF_PARTS = ("demo.md", "adding-a-framework.md")
"""Pages whose blocks are parts of this project's code."""


def unannounced(page: Path) -> list[str]:
    """Return the first lines of blocks that need ranks, without a sentence above that says so."""
    text, found = page.read_text(encoding="utf-8"), list[str]()
    for one in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        above = text[: one.start()].rstrip().rpartition("\n\n")[2]
        needs = NEEDS_RANKS.search(one[1]) and not STARTS_RANKS.search(one[1])
        if needs and not re.search(r"\b(ranks?|processes)\b", above):
            found.append(one[1].partition("\n")[0])
    return found


@pytest.mark.parametrize("page", [path.name for path in (ROOT / "docs").glob("*.md") if path.name not in OF_PARTS])
def test_blocks_that_need_ranks_say_so_above(page: str) -> None:
    assert unannounced(ROOT / "docs" / page) == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_on_pages_print_what_they_show(name: str, tmp_path: Path) -> None:
    printed = run(tmp_path, PROGRAMS[name])
    said = re.findall(r"^print\(.*\)  # (.+)$", PROGRAMS[name], re.MULTILINE)
    assert printed.splitlines() == said or not said
    assert "RankError" not in PROGRAMS[name] or "MismatchError" in printed


def test_porting_page_has_every_framework() -> None:
    assert PAIRS.keys() == {"The port to torch", *SECTIONS}


@pytest.mark.parametrize("section", PAIRS)
def test_program_and_its_port_print_the_same(section: str, tmp_path: Path) -> None:
    framework = SECTIONS.get(section)
    if framework == "megengine":  # its launcher starts the ranks
        printed = run(tmp_path, PAIRS[section], "-m", "collshim", "run", "--no-prefix", "--as", framework, "-n", "1")
    else:
        printed = run(tmp_path, PAIRS[section], "-c", RANKS, after=(framework or "oneflow",))
    rows = "[[1.5, 3.0]] [[1.0, 2.0], [2.0, 4.0]]"
    assert sorted(printed.splitlines()) == [f"0 {rows}", f"1 {rows}"]
