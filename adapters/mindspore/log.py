"""``mindspore.log`` (source: MindSpore 2.10.0): messages to the logger ``mindspore`` of ``logging``."""

from __future__ import annotations

import logging
from typing import Any

from collshim.adapting.absent import saying

__all__ = ["critical", "debug", "error", "get_level", "info", "warning"]
_LOG = logging.getLogger("mindspore")
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)


def debug(msg: str, *args: Any, **kwargs: Any) -> None:
    """Log a message of level DEBUG."""
    _LOG.debug(msg, *args, **kwargs)


def info(msg: str, *args: Any, **kwargs: Any) -> None:
    """Log a message of level INFO."""
    _LOG.info(msg, *args, **kwargs)


def warning(msg: str, *args: Any, **kwargs: Any) -> None:
    """Log a message of level WARNING."""
    _LOG.warning(msg, *args, **kwargs)


def error(msg: str, *args: Any, **kwargs: Any) -> None:
    """Log a message of level ERROR."""
    _LOG.error(msg, *args, **kwargs)


def critical(msg: str, *args: Any, **kwargs: Any) -> None:
    """Log a message of level CRITICAL."""
    _LOG.critical(msg, *args, **kwargs)


def get_level() -> str:
    """Return the lowest level that is printed, as a number; 0 is debug."""
    return str(_LEVELS.index(_LOG.getEffectiveLevel())) if _LOG.getEffectiveLevel() in _LEVELS else "2"


__getattr__ = saying(__name__)
