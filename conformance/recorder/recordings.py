"""The files of recordings: one folder per framework and version, one file per function, one line per call.

``provenance.json`` of a folder tells which framework in which version was run, how, when, and on what; a line may
name another provenance of its own ("documentation", "source"); "recorded" is what the folder says.
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
    """A call, and what each rank answered."""

    asked: Asked
    answers: tuple[Answer, ...]
    provenance: str = "recorded"

    def of_rank(self, rank: int) -> Answer:
        """What rank ``rank`` answered."""
        return self.answers[rank if len(self.answers) > 1 else 0]

    @property
    def name(self) -> str:
        """Its readable identity: the call's id and the size of its world."""
        return f"{self.asked.id}@{self.asked.world}{self.asked.size}"

    @property
    def accident(self) -> bool:
        """Whether a rank of the real framework hung or died."""
        return any("ended" in answer for answer in self.answers)


def write(folder: Path, provenance: dict[str, Any], recordings: Sequence[tuple[Asked, list[Answer]]]) -> None:
    """Write a folder anew; the files are named for the functions."""
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
    """Write a folder with ``found`` in place of what it had of these calls; how many recordings it has then.

    They come in the order of ``every``; what is not asked any more is left out.
    """
    known = {_key(one.asked): (one.asked, list(one.answers)) for one in read(folder)}
    known |= {_key(asked): (asked, answers) for asked, answers in found}
    kept = [known[_key(asked)] for asked in every if _key(asked) in known]
    write(folder, provenance, kept)
    return len(kept)


def _key(asked: Asked) -> tuple[str, str, int]:
    return asked.id, asked.world, asked.size


def folders(framework: str) -> list[Path]:
    """The folders of a framework's recordings, one per version."""
    return sorted(path for path in FOLDER.glob(f"{framework}-*") if path.is_dir())


def read(folder: Path) -> Iterator[Recording]:
    """Every recording of a folder."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            found = json.loads(line)
            yield Recording(Asked.from_json(found), tuple(found["out"]), found.get("provenance", "recorded"))


def provenance(folder: Path) -> dict[str, Any]:
    """What a folder's recordings come from."""
    found: dict[str, Any] = json.loads((folder / "provenance.json").read_text())
    return found


def _line(asked: Asked, answers: list[Answer]) -> str:
    same = all(answer == answers[0] for answer in answers)
    return json.dumps({**asked.as_json(), "out": answers[:1] if same else answers}, separators=(",", ":"))
