"""The documents' examples: one module per framework, with its ``SHEETS``."""

from __future__ import annotations

from collshim.demo.example import Row, Sheet, observe
from collshim.demo.examples import megengine, mindspore, oneflow, tensorflow, torch

SHEETS: tuple[Sheet, ...] = (
    *oneflow.SHEETS,
    *torch.SHEETS,
    *tensorflow.SHEETS,
    *mindspore.SHEETS,
    *megengine.SHEETS,
)


def observe_all() -> list[list[list[Row]]]:
    """Run every sheet on this rank, one of four; return the rows by sheet and example."""
    return [observe(sheet) for sheet in SHEETS]
