"""Every surface by name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from collshim.frameworks import FRAMEWORKS
from tests.robustness.spelling import Surface

SURFACES: Mapping[str, Surface] = {
    name: import_module(f"tests.robustness.spellings.{name}").SURFACE for name in ("communicator", *FRAMEWORKS)
}
