"""``megengine.logger``: logging through Python's ``logging`` (source: MegEngine 1.13.0)."""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["enable_debug_log", "get_logger", "set_log_file", "set_log_level"]

_level = logging.INFO
_all_loggers: list[logging.Logger] = []


def get_logger(name: str | None = None, formatter: Any = None) -> logging.Logger:
    """Return Python's logger of this name, at the level set by ``set_log_level``."""
    found = logging.getLogger(name or "megengine")
    if found not in _all_loggers:
        found.setLevel(_level)
        _all_loggers.append(found)
    return found


def set_log_level(level: int | str, update_existing: bool = True) -> int:
    """Set the log level, and return the old one."""
    global _level
    earlier = _level
    _level = logging.getLevelName(level) if isinstance(level, str) else level
    for logger in _all_loggers if update_existing else ():
        logger.setLevel(_level)
    return earlier


def set_log_file(fout: Any, mode: str = "a") -> None:
    """Also log to a file; ``fout`` is its name or an open file."""
    handler = logging.FileHandler(fout, mode) if isinstance(fout, str) else logging.StreamHandler(fout)
    for logger in _all_loggers or [get_logger()]:
        logger.addHandler(handler)


def enable_debug_log() -> None:
    """Log messages of all levels."""
    set_log_level(logging.DEBUG)
