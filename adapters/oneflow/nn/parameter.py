"""``flow.nn.Parameter``."""

from __future__ import annotations

from typing import Any

import torch

from collshim.oneflow.framework.global_tensor import GlobalTensor
from collshim.oneflow.framework.tensor import ADOPTED, Tensor, adopt, plain


class _ParameterType(type(torch.nn.Parameter)):  # type: ignore[misc]  # torch's own metaclass
    """A metaclass that makes global parameters instances of ``Parameter`` too."""

    def __instancecheck__(cls, instance: object) -> bool:
        if isinstance(instance, GlobalTensor):
            return getattr(instance, "_is_param", False)
        return type.__instancecheck__(cls, instance)


class Parameter(Tensor, torch.nn.Parameter, metaclass=_ParameterType):  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
    """A tensor that modules register as a parameter; an instance of torch's class and of ``flow.Tensor``."""

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        """Return a parameter in the memory of ``data``; it is global if ``data`` is."""
        if isinstance(data, GlobalTensor):
            return data.as_parameter(requires_grad)
        values = torch.empty(0) if data is None else plain(data.detach())
        return torch.Tensor._make_subclass(cls, values, requires_grad)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (plain(self.detach()), self.requires_grad)


ADOPTED[torch.nn.Parameter] = Parameter


def adopt_parameters(module: torch.nn.Module) -> None:
    """Convert the parameters and buffers of a module and its children to OneFlow's classes, in place."""
    adopt([*module.parameters(), *module.buffers()])
