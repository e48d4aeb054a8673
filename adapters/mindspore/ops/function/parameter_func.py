"""Functions of ``mindspore.ops`` that change parameters (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

import torch

from collshim.mindspore.tensor import settle

__all__ = ["assign", "assign_add", "assign_sub"]


def assign(variable: Any, value: Any) -> Any:
    """Copy the value into the parameter, and return it."""
    settle(variable)
    with torch.no_grad():
        variable.copy_(torch.as_tensor(value))
    return variable


def assign_add(variable: Any, value: Any) -> Any:
    """Add the value to the parameter, and return it."""
    settle(variable)
    with torch.no_grad():
        variable.add_(torch.as_tensor(value))
    return variable


def assign_sub(variable: Any, value: Any) -> Any:
    """Subtract the value from the parameter, and return it."""
    settle(variable)
    with torch.no_grad():
        variable.sub_(torch.as_tensor(value))
    return variable
