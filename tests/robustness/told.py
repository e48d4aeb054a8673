"""What ranks that are processes tell of their calls: a line each, which the test reads."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from collshim.errors import CollshimError

SLACK = 3.0
"""Seconds after its deadline by which a call has ended, on a machine that is busy."""


class Told(NamedTuple):
    """How a call ended: the class of what it raised, or "", its text, its value, and how long it took."""

    kind: str
    ours: bool
    text: str
    value: Any
    seconds: float


def tell(call: Callable[[], Any]) -> None:
    """Call, and write how that ended; an exit or an interrupt is told as any error."""
    kind, ours, text, value, begun = "", False, "", None, time.monotonic()
    try:
        value = call()
    except BaseException as error:
        kind, ours, text = type(error).__name__, isinstance(error, CollshimError), str(error)
    print(json.dumps(Told(kind, ours, text, value, time.monotonic() - begun)), flush=True)


def told(lines: str) -> list[Told]:
    """What was told, in order; other lines are none of it."""
    return [Told(*json.loads(line)) for line in lines.splitlines() if line.startswith("[")]
