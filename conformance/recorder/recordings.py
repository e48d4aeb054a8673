"""The files of recordings: one folder per framework and version, one file per function, one line per call.

A folder's ``provenance.json`` records which framework and version was run, how, when, and on what. A line may name
another provenance ("documentation", "source"); "recorded" refers to the folder's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collshim.conformance.recorder.asked import Asked
from collshim.conformance.recorder.performing import Answer

FOLDER = Path(__file__).parent.parent / "recordings"


@dataclass(frozen=True)
class Recording:
    """A call, and the answer of each rank."""

    asked: Asked
    answers: tuple[Answer, ...]
    provenance: str = "recorded"

    def of_rank(self, rank: int) -> Answer:
        """Return the answer of rank ``rank``."""
        return self.answers[rank if len(self.answers) > 1 else 0]

    @property
    def name(self) -> str:
        """The readable name: the call's id and the size of its world."""
        return f"{self.asked.id}@{self.asked.world}{self.asked.size}"

    @property
    def accident(self) -> bool:
        """Whether a rank of the real framework hung or died."""
        return any("ended" in answer for answer in self.answers)


def write(folder: Path, provenance: dict[str, Any], recordings: Sequence[tuple[Asked, list[Answer]]]) -> None:
    """Rewrite a folder; the files are named after the functions."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.jsonl"):
        old.unlink()
    by_function: dict[str, list[str]] = {}
    for asked, answers in recordings:
        by_function.setdefault(asked.id.partition("/")[0], []).append(_line(asked, answers))
    for function, lines in by_function.items():
        (folder / f"{function}.jsonl").write_text("\n".join(lines) + "\n")
    counted = {**provenance, "cases": len(recordings)}
    (folder / "provenance.json").write_text(json.dumps(counted, indent=2) + "\n")


def merge(
    folder: Path, provenance: dict[str, Any], found: Sequence[tuple[Asked, list[Answer]]], every: Sequence[Asked]
) -> int:
    """Write a folder in which ``found`` replaces the recordings of the same calls; return the new number of recordings.

    They are in the order of ``every``; recordings of calls that no longer exist are dropped.
    """
    known = {_key(one.asked): (one.asked, list(one.answers)) for one in read(folder)}
    known |= {_key(asked): (asked, answers) for asked, answers in found}
    kept = [known[_key(asked)] for asked in every if _key(asked) in known]
    write(folder, provenance, kept)
    return len(kept)


def _key(asked: Asked) -> tuple[str, str, int]:
    return asked.id, asked.world, asked.size


def folders(framework: str) -> list[Path]:
    """Return the folders of a framework's recordings, one per version."""
    return sorted(path for path in FOLDER.glob(f"{framework}-*") if path.is_dir())


def read(folder: Path) -> Iterator[Recording]:
    """Yield every recording of a folder."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            found = json.loads(line)
            yield Recording(Asked.from_json(found), tuple(found["out"]), found.get("provenance", "recorded"))


def provenance(folder: Path) -> dict[str, Any]:
    """Return the provenance of a folder's recordings."""
    found: dict[str, Any] = json.loads((folder / "provenance.json").read_text())
    return found


def _line(asked: Asked, answers: list[Answer]) -> str:
    same = all(answer == answers[0] for answer in answers)
    return json.dumps({**asked.as_json(), "out": answers[:1] if same else answers}, separators=(",", ":"))
