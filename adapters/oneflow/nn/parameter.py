"""``flow.nn.Parameter``."""

from __future__ import annotations

from typing import Any

import torch

from collshim.oneflow.framework.tensor import ADOPTED, Tensor, adopt, plain


class Parameter(Tensor, torch.nn.Parameter):  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
    """A tensor that modules register as a parameter; an instance of torch's class and of ``flow.Tensor``."""

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        """Return a parameter with the memory of ``data``."""
        values = torch.empty(0) if data is None else plain(data.detach())
        return torch.Tensor._make_subclass(cls, values, requires_grad)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (plain(self.detach()), self.requires_grad)


ADOPTED[torch.nn.Parameter] = Parameter


def adopt_parameters(module: torch.nn.Module) -> None:
    """Convert the parameters and buffers of a module and its children to OneFlow's classes, in place."""
    adopt([*module.parameters(), *module.buffers()])
