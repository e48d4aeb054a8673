"""``tf.compat.v2``: the names of ``tf`` itself."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from collshim.adapting.absent import saying

_absent = saying(__name__)


def __getattr__(name: str) -> Any:
    module = import_module("collshim.tensorflow")
    is_there = name in ("keras", *module._OF_KERAS) or (name in vars(module) and not name.startswith("_"))
    return getattr(module, name) if is_there else _absent(name)


def __dir__() -> list[str]:
    return dir(import_module("collshim.tensorflow"))
