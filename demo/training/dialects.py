"""The five trainings, by framework."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType

from collshim.demo.training.digits import Digits
from collshim.frameworks import FRAMEWORKS

DIALECTS: dict[str, ModuleType] = {
    entry.title: import_module(f"collshim.demo.training.{entry.name}") for entry in FRAMEWORKS.values()
}


def train_all(digits: Digits) -> dict[str, list[float]]:
    """Train five times on this rank, together with the others; return the losses by framework."""
    return {name: dialect.train(digits) for name, dialect in DIALECTS.items()}


def averaging_line(dialect: ModuleType) -> str:
    """Return the line of the training's source that sums the gradients over the ranks."""
    lines = inspect.getsource(dialect.train).splitlines()
    return next(line.strip() for line in lines if "all_reduce" in line and "gradient" in line)
