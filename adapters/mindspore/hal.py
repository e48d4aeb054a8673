"""``mindspore.hal``: the older path of ``mindspore.runtime``'s streams and events (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.mindspore.runtime import (
    Event,
    Stream,
    StreamCtx,
    communication_stream,
    current_stream,
    default_stream,
    empty_cache,
    set_cur_stream,
    synchronize,
)

__all__ = [
    "Event",
    "Stream",
    "StreamCtx",
    "communication_stream",
    "current_stream",
    "default_stream",
    "empty_cache",
    "set_cur_stream",
    "synchronize",
]

__getattr__ = saying(__name__)
