"""Headers: what the scorer reads from a program, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from collshim.conformance.faults import program
from collshim.conformance.faults.program import PARTS, programs, read

GOOD = '''
def good(dist):
    """shape: rank 1 gives more.

    blame: 1
    """
    dist.barrier()  # <- here


def good_twin(dist):
    dist.barrier()
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(program, "FOLDER", tmp_path)
    return tmp_path


def test_header_is_read(folder: Path) -> None:
    (folder / "some.py").write_text(GOOD)
    found = read("good")
    assert (found.fault, found.summary) == ("shape", "rank 1 gives more")
    assert (found.file, found.twin) == ("some.py", "good_twin")
    assert (found.blame, found.lines) == (frozenset({1}), (7,))
    assert (found.affected, found.dead) == (frozenset({0, 1, 2}), frozenset[int]())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *(("  # <- here", ""), ("blame: 1", "blames: 1"), ("shape: ", ""), ("blame: 1", "blame: 1\n    guilt: 2")),
        *(("good_twin", "other_twin"), ("blame: 1", "blame: 1\n    twin: other_twin")),
    ],
)
def test_incomplete_header_is_refused(folder: Path, old: str, new: str) -> None:
    (folder / "bad.py").write_text(GOOD.replace(old, new))
    with pytest.raises(ValueError, match=r"^bad\.py: good has "):
        read("good")


def test_dead_rank_is_not_affected_by_default(folder: Path) -> None:
    (folder / "dead.py").write_text(GOOD.replace("blame: 1", "blame: 1\n    dead: 1"))
    assert read("good").affected == {0, 2}


def test_program_file_name_is_its_bare_name() -> None:
    names = [found.function(part).__code__.co_filename for found in programs() for part in PARTS]
    assert {Path(name).name for name in names} == set(names)


def test_two_programs_can_share_a_twin(folder: Path) -> None:
    (folder / "two.py").write_text(
        GOOD + GOOD.replace("good", "worse").replace("blame: 1", "blame: 1\n    twin: good_twin")
    )
    assert read("worse").twin == "good_twin"


def test_only_the_fault_is_marked() -> None:
    marks = sum(path.read_text().count("# <- here") for path in program.FOLDER.glob("*.py"))
    assert marks == sum(len(found.lines) for found in programs())
