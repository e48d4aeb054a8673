"""docs/invariance.md: its commands print what the page shows, its patches mend the examples, its fields exist."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.robustness.scripts import Ended, run_command

pytestmark = pytest.mark.processes

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "invariance.md").read_text(encoding="utf-8")
FOR_AGENTS = (DOCS / "invariance-for-agents.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")}
FAST = ("--as", "threads")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the examples, which the page's patches may change."""
    for path in (DOCS / "examples").glob("invariance_*.py"):
        shutil.copy(path, tmp_path)
    return tmp_path


def run(folder: Path, *words: str) -> Ended:
    return run_command(folder, "invariance", *words)


def normalised(text: str) -> str:
    """Return a report without its times and the spaces at the ends of its lines."""
    text = re.sub(r"\d+\.\d s\b", "N s", text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def patch(folder: Path, text: str) -> None:
    """Change a file as a block of the page says: ``---`` names it, ``@@`` separates the places."""
    first, _, rest = text.partition("\n")
    path = folder / first.removeprefix("--- ")
    source = path.read_text(encoding="utf-8")
    for place in re.split(r"^@@\n", rest.partition("\n")[2], flags=re.MULTILINE):
        old, new = (
            "".join(f"{line[1:]}\n" for line in place.splitlines() if line[:1] not in without) for without in "+-"
        )
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    path.write_text(source, encoding="utf-8")


def follow(folder: Path, section: str) -> list[int | None]:
    """Do what a section shows, block by block, and return the exit codes of its commands."""
    codes = list[int | None]()
    for language, text in BLOCK.findall(SECTIONS[section]):
        if language == "diff":
            patch(folder, text)
        elif language == "python":
            (folder / text.partition("\n")[0].removeprefix("# ")).write_text(text, encoding="utf-8")
        elif language == "text":
            command, _, shown = text.partition("\n")
            words = command.removeprefix("$ collshim invariance ").split()
            ended = run(folder, *words, *(FAST if "--against" in words else ()))  # whose report is the same
            assert normalised(ended.out) == normalised(shown), ended.errors
            codes.append(ended.code)
    return codes


@pytest.mark.parametrize(
    ("section", "codes"), [("A tensor-parallel step", [1, 0]), ("Write a step", [0]), ("A port", [1, 0])]
)
def test_commands_of_a_section_print_what_it_shows(section: str, codes: list[int], folder: Path) -> None:
    assert follow(folder, section) == codes


def test_no_command_of_the_page_is_left_out() -> None:
    followed = ("A tensor-parallel step", "Write a step", "A port")
    assert sum(SECTIONS[section].count("\n$ collshim") for section in followed) == PAGE.count("\n$ collshim")


def test_test_of_the_page_passes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = dict(text.split("\n", 1) for language, text in BLOCK.findall(PAGE) if language == "python")
    (folder / "step.py").write_text(blocks["# step.py"], encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    names: dict[str, Any] = {}
    exec(compile(blocks["# test_step.py"], "test_step.py", "exec"), names)
    (test,) = (value for name, value in names.items() if name.startswith("test_"))
    test()


def fields(text: str) -> Iterator[list[str]]:
    """Yield the fields in the first cells of a table, as paths of keys, with ``[]`` for the elements of a list."""
    for row in re.findall(r"^\| (`.*?`) \|", text, re.MULTILINE):
        parent = list[str]()
        for name in re.findall(r"`([^`]+)`", row):
            path = [*parent, *name[1:].split(".")] if name.startswith(".") else name.split(".")
            parent = path[:-1]
            yield path


def reached(value: Any, path: list[str]) -> list[Any]:
    """Return all values at a path, of which each key must exist unless what it belongs to is null."""
    if not path or value is None:
        return [value]
    key, *rest = path
    found = value[key.removesuffix("[]")]
    return [one for item in (found if key.endswith("[]") else [found]) for one in reached(item, rest)]


@pytest.mark.parametrize(
    ("words", "title"),
    [
        (("invariance_step.py:step",), "`--json` prints"),
        (("invariance_port.py:step", "--against", "invariance_port_original.py:step"), "With `--against`:"),
    ],
)
def test_fields_of_the_pages_are_in_the_json(words: tuple[str, ...], title: str, folder: Path) -> None:
    ended = run(folder, *words, "--json", "--ranks", "1,2", *FAST)
    report = json.loads(ended.out)
    assert (ended.code, report["code"]) == (1, 1), ended.errors
    for page in (PAGE, FOR_AGENTS):
        paths = list(fields(TABLE.findall(page.partition(title)[2])[0]))
        assert len(paths) > 4
        assert all(reached(report, path) or path[0] == "failures[]" or "missing" in path[-1] for path in paths)
