"""Copies of the package: an unchanged one, and one with a mutant."""

from __future__ import annotations

import compileall
import shutil
from pathlib import Path

import collshim
from collshim.conformance.mutants.mutant import Mutant

PACKAGE = Path(collshim.__file__).parent
"""The package. Links of a checkout are followed: a copy has the adapters and the suite as folders, as if installed."""


def source(mutant: Mutant) -> str:
    """Return the text of the file that a mutant changes, from this package."""
    return (PACKAGE / mutant.file).read_text(encoding="utf-8")


def copy(folder: Path) -> Path:
    """Copy the package unchanged into ``folder`` and compile it."""
    shutil.copytree(PACKAGE, folder / "collshim", ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(folder / "collshim", quiet=2)
    return folder


def mutate(baseline: Path, folder: Path, mutant: Mutant) -> Path:
    """Copy ``baseline`` into ``folder`` and put the mutant in.

    Raises:
        PatchError: the mutant does not fit.
    """
    shutil.copytree(baseline, folder, dirs_exist_ok=True)
    path = folder / "collshim" / mutant.file
    path.write_text(mutant.apply(path.read_text(encoding="utf-8")), encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        compiled.unlink()  # its time stamp counts full seconds
    return folder
