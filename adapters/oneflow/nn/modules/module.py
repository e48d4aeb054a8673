"""``flow.nn.Module``, and torch's modules as OneFlow's, with its tensors for parameters and its devices."""

from __future__ import annotations

from typing import Any

import torch

from collshim.oneflow.device_names import Device, is_device, own_device
from collshim.oneflow.framework.tensor import placed
from collshim.oneflow.global_tensors import refuse
from collshim.oneflow.nn.parameter import adopt_parameters


class _ModuleType(type):
    """Adopts what the making of a module made; a module of torch's is an instance of the class that stands for its."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        module = super().__call__(*args, **kwargs)
        adopt_parameters(module)
        return module

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__dict__.get("_torchs", ())) or super().__instancecheck__(instance)


class Module(torch.nn.Module, metaclass=_ModuleType):
    """The base of modules: torch's, with OneFlow's devices."""

    _torchs = torch.nn.Module

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """This module, its parameters and buffers on another device, in another dtype, or both."""
        if args and is_device(args[0]):
            args = (own_device(args[0]), *args[1:])
        return super().to(*args, **placed(kwargs))

    def cuda(self, device: Device = None) -> Any:
        """This module on a GPU: number ``device``, or this rank's."""
        return super().to(own_device("cuda" if device is None else device))

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Set the gradients to zero, or with ``set_to_none`` to None."""
        super().zero_grad(set_to_none)

    to_global = refuse("Module.to_global")
    to_local = refuse("Module.to_local")
    to_consistent = refuse("Module.to_consistent")


_made: dict[type, type] = {}


def as_oneflows(kind: type[torch.nn.Module]) -> type[Module]:
    """The class that is ``kind`` with what ``Module`` changes; the same for the same ``kind``.

    It takes a device in ``device=`` as OneFlow names it.
    """
    if kind not in _made:

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            kind.__init__(self, *args, **placed(kwargs))

        members = {
            "__init__": __init__,
            "__module__": "collshim.oneflow.nn",
            "__doc__": kind.__doc__,
            "_torchs": kind,
        }
        _made[kind] = _ModuleType(kind.__name__, (Module, kind), members)
    return _made[kind]


def oneflows(name: str, value: Any) -> Any:
    """``value`` of torch's module ``nn`` as ``oneflow.nn`` has it."""
    if isinstance(value, type) and issubclass(value, torch.nn.Module) and not issubclass(value, Module):
        return as_oneflows(value)
    return value
