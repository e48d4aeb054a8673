"""Headers: what the scorer reads of a program, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from collshim.conformance.faults import program
from collshim.conformance.faults.program import PARTS, programs, read

GOOD = '''"""shape: rank 1 gives more.

blame: 1
"""


def fault(dist):
    dist.barrier()  # <- here


def twin(dist):
    dist.barrier()
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(program, "FOLDER", tmp_path)
    return tmp_path


def test_a_header_is_read(folder: Path) -> None:
    (folder / "good.py").write_text(GOOD)
    found = read("good")
    assert (found.fault, found.summary) == ("shape", "rank 1 gives more")
    assert (found.blame, found.lines) == (frozenset({1}), (8,))
    assert (found.told, found.dead) == (frozenset({0, 1, 2}), frozenset[int]())


@pytest.mark.parametrize(
    ("old", "new"),
    [("  # <- here", ""), ("blame: 1", "blames: 1"), ("shape: ", ""), ("blame: 1", "blame: 1\nguilt: 2")],
)
def test_a_header_that_lacks_something_is_refused(folder: Path, old: str, new: str) -> None:
    (folder / "bad.py").write_text(GOOD.replace(old, new))
    with pytest.raises(ValueError, match=r"^bad\.py: "):
        read("bad")


def test_whoever_is_dead_need_not_be_told(folder: Path) -> None:
    (folder / "dead.py").write_text(GOOD.replace("blame: 1", "blame: 1\ndead: 1"))
    assert read("dead").told == {0, 2}


def test_error_texts_know_a_program_by_its_bare_name() -> None:
    names = [found.function(part).__code__.co_filename for found in programs() for part in PARTS]
    assert {Path(name).name for name in names} == set(names)


def test_only_the_fault_is_marked() -> None:
    for found in programs():
        start = found.function("twin").__code__.co_firstlineno
        assert all(line < start for line in found.lines), found.name
