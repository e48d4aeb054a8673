"""The documents' examples: one module per framework, with its ``SHEETS``."""

from __future__ import annotations

from collshim.demo.example import Sheet
from collshim.demo.examples import mindspore, oneflow, tensorflow

SHEETS: tuple[Sheet, ...] = (
    *oneflow.SHEETS,

    *tensorflow.SHEETS,
    *mindspore.SHEETS,

)
