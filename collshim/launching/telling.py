"""Print an error only once, even if several ranks of a machine raise it.

A rank notes an error in the folder of its agent's error files, which the ranks of a machine and their launcher share.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

_NOTE = "told-"


def claim(error_file: str, text: str) -> Path | None:
    """Claim an error's text, and return its note, for ``tell``; return None if some rank has already claimed it."""
    note = Path(error_file).parents[1] / f"{_NOTE}{sha256(text.encode()).hexdigest()[:16]}"
    try:
        note.touch(exist_ok=False)
    except FileExistsError:
        return None
    return note


def tell(note: Path) -> None:
    """Note that the error has been printed; do so only then, since the agent can end a rank that is about to print."""
    note.write_text("told")


def is_told(error_file: str) -> bool:
    """Return whether a rank has printed an error on behalf of all ranks that raise it."""
    return any(note.read_text() for note in Path(error_file).parents[1].glob(f"{_NOTE}*"))
