"""The documents' examples: one module per framework, with its ``SHEETS``."""

from __future__ import annotations

from importlib import import_module

from collshim.demo.example import Row, Sheet, observe
from collshim.frameworks import FRAMEWORKS

SHEETS: tuple[Sheet, ...] = tuple(
    sheet for framework in FRAMEWORKS for sheet in import_module(f"collshim.demo.examples.{framework}").SHEETS
)


def observe_all() -> list[list[list[Row]]]:
    """Run every sheet on this rank, one of four; return the rows by sheet and example."""
    return [observe(sheet) for sheet in SHEETS]
