"""The reports of ranks that are processes about their calls: a line each, which the test reads."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from collshim.errors import CollshimError

SLACK = 3.0
"""Seconds after its deadline by which a call has ended, on a busy machine."""


class Told(NamedTuple):
    """The end of a call: the class of its error, or "", its text, its value, and its duration."""

    kind: str
    ours: bool
    text: str
    value: Any
    seconds: float


def tell(call: Callable[[], Any]) -> None:
    """Make a call, and write how it ended; an exit or an interrupt is reported like any error."""
    kind, ours, text, value, begun = "", False, "", None, time.monotonic()
    try:
        value = call()
    except BaseException as error:
        kind, ours, text = type(error).__name__, isinstance(error, CollshimError), str(error)
    print(json.dumps(Told(kind, ours, text, value, time.monotonic() - begun)), flush=True)


def read_reports(lines: str) -> list[Told]:
    """Parse the reports, in order; ignore other lines."""
    return [Told(*json.loads(line)) for line in lines.splitlines() if line.startswith("[")]
