"""Copies of the package: the unchanged one, and one with a mutant in it."""

from __future__ import annotations

import compileall
import shutil
from pathlib import Path

import collshim
from collshim.conformance.mutants.mutant import Mutant

PACKAGE = Path(collshim.__file__).parent
"""Of a checkout the links are followed: a copy has the adapters and the suite in folders, as an installed package."""


def source(mutant: Mutant) -> str:
    """The text of the file that a mutant changes, as it is here."""
    return (PACKAGE / mutant.file).read_text(encoding="utf-8")


def copied(folder: Path) -> Path:
    """The unchanged package, compiled, in ``folder``."""
    shutil.copytree(PACKAGE, folder / "collshim", ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(folder / "collshim", quiet=2)
    return folder


def mutated(baseline: Path, folder: Path, mutant: Mutant) -> Path:
    """A copy of ``baseline`` in ``folder`` with the mutant in it.

    Raises:
        PatchError: the mutant does not fit.
    """
    shutil.copytree(baseline, folder, dirs_exist_ok=True)
    path = folder / "collshim" / mutant.file
    path.write_text(mutant.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        compiled.unlink()  # its time stamp is in whole seconds
    return folder
