"""``tf.config.optimizer``: choices for a compiler, which have no effect. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collshim.adapting.absent import saying

__all__ = ["get_experimental_options", "get_jit", "set_experimental_options", "set_jit"]

_JIT = [""]
_OPTIONS: dict[str, Any] = {"disable_model_pruning": False, "disable_meta_optimizer": False}


def set_jit(enabled: bool | str) -> None:
    """Store the choice: True or "autoclustering" for a compiler, which is not there."""
    _JIT[0] = "autoclustering" if enabled in (True, "autoclustering") else ""


def get_jit() -> str:
    """Return the choice: "autoclustering", or "" for none."""
    return _JIT[0]


def set_experimental_options(options: Mapping[str, Any]) -> None:
    """Store further options, by their names."""
    _OPTIONS.update(options)


def get_experimental_options() -> dict[str, Any]:
    """Return all stored options."""
    return dict(_OPTIONS)


__getattr__ = saying(__name__)
