"""Which form of the ring is in use: the compiled one, or the one in Python."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def _find() -> tuple[Any, str]:
    choice = os.environ.get("COLLSHIM_CORE", "")
    if sys.platform != "linux":
        return None, f"none: {sys.platform} is not Linux"
    if choice != "python":
        try:
            return import_module("collshim.transports.shared_memory._core"), "compiled"
        except ImportError:
            if choice == "compiled":
                raise
    if platform.machine() != "x86_64":
        return None, f"none: the extension was not built, and Python's form runs only on x86-64, not {platform.machine()}"
    return import_module("collshim.transports.shared_memory.ring"), "Python"


_found, _description = _find()
Ring: Any = getattr(_found, "Ring", None)
read_far: Callable[[int, int, int, int], bool] | None = getattr(_found, "read_far", None)


def description() -> str:
    """Say which form is in use."""
    return _description
