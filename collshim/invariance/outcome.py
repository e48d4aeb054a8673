"""What a step returns: losses, modules, gradients by name, in any order and nesting."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from collshim.arrays.kinds import as_torch, is_array
from collshim.errors import ArgumentTypeError
from collshim.invariance.parameters import kept, local, place_of, summed
from collshim.invariance.records import Parameter


class Outcome:
    """The parts of what a step returned.

    Attributes:
        loss: the first loss that is a torch tensor, or None.
        losses: all losses.
        modules: modules and parameters, each with a prefix for its names.
        gradients: the arrays in dicts, which are treated as gradients by name; other arrays are not compared.

    Raises:
        ArgumentTypeError: the step returned a value of any other type.
    """

    def __init__(self, returned: Any) -> None:
        self.loss: Tensor | None = None
        self.losses: list[float] = []
        self.modules: list[tuple[str, nn.Module | Tensor]] = []
        self.gradients: list[Parameter] = []
        self._add(returned, "")

    def _add(self, value: Any, name: str) -> None:
        if value is None or isinstance(value, bool | str):
            return
        if isinstance(value, nn.Module) or (isinstance(value, Tensor) and value.is_leaf and value.requires_grad):
            self.modules.append((name, value))
        elif isinstance(value, dict):
            for key, item in value.items():
                self._add(item, f"{name}.{key}" if name else str(key))
        elif isinstance(value, list | tuple):
            for item in value:
                self._add(item, name)
        elif isinstance(value, int | float):
            self.losses.append(float(value))
        else:
            self._add_array(value, name)

    def _add_array(self, value: Any, name: str) -> None:
        array = _tensor(value)
        is_loss = array.numel() == 1 and (array.requires_grad or name.rpartition(".")[2] == "loss")
        if name and not array.requires_grad and not is_loss:
            gradient = summed(array)
            self.gradients.append(Parameter((name,), gradient=kept(gradient), place=place_of(gradient)))
        elif array.numel() == 1:
            if self.loss is None and isinstance(value, Tensor):
                self.loss = value
            self.losses.append(float(local(array)))


def _tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if is_array(value):
        return as_torch(value).detach()
    for method in ("asnumpy", "numpy"):  # MindSpore's tensors have asnumpy, most others numpy
        if callable(getattr(value, method, None)):
            return torch.from_numpy(np.array(getattr(value, method)()))
    raise ArgumentTypeError(
        f"the step returned a {type(value).__module__}.{type(value).__qualname__}, should return losses, modules, and "
        "dicts of gradients by name"
    )
