"""``tf.compat.v2``: the names of ``tf`` itself."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("collshim.tensorflow"), name)


def __dir__() -> list[str]:
    return dir(import_module("collshim.tensorflow"))
