"""The switch for convolution algorithms, which torch chooses here (``megengine.functional.debug_param``)."""

from __future__ import annotations

__all__ = ["get_execution_strategy", "set_execution_strategy"]

_strategy = {"value": "HEURISTIC"}


def get_execution_strategy() -> str:
    """Return the value passed to ``set_execution_strategy``."""
    return _strategy["value"]


def set_execution_strategy(option: str) -> None:
    """Store the value of the switch, which has no effect here."""
    _strategy["value"] = option


get_conv_execution_strategy = get_execution_strategy
set_conv_execution_strategy = set_execution_strategy
