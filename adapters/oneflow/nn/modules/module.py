"""``flow.nn.Module``, and torch's modules with OneFlow's tensors as parameters and OneFlow's devices."""

from __future__ import annotations

import ast
from typing import Any, cast

import torch

from collshim.oneflow.device_names import Device, is_device, own_device
from collshim.oneflow.framework.global_tensor import to_global
from collshim.oneflow.framework.tensor import resolve_device
from collshim.oneflow.global_tensors import refuse
from collshim.oneflow.nn.parameter import adopt_parameters


class _ModuleType(type):
    """A metaclass that converts the tensors of new modules to OneFlow's classes.

    torch's modules count as instances of the adapted classes.
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        module = super().__call__(*args, **kwargs)
        adopt_parameters(module)
        return module

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__dict__.get("_torch_class", ())) or super().__instancecheck__(instance)


class Module(torch.nn.Module, metaclass=_ModuleType):
    """The base class of modules: torch's, with OneFlow's devices."""

    _torch_class = torch.nn.Module

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Move this module, its parameters and buffers to another device, dtype, or both, and return the module."""
        if args and is_device(args[0]):
            args = (own_device(args[0]), *args[1:])
        return super().to(*args, **resolve_device(kwargs))

    def cuda(self, device: Device = None) -> Any:
        """Move this module to GPU number ``device``, by default this rank's GPU, and return the module."""
        return super().to(own_device("cuda" if device is None else device))

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Set the gradients to zero, or with ``set_to_none`` to None."""
        super().zero_grad(set_to_none)

    def to_global(self, placement: Any = None, sbp: Any = None) -> Any:
        """Convert the parameters and buffers to global tensors, and return the module."""
        for module in self.modules():
            for name, tensor in module._parameters.items():
                if tensor is not None:
                    made = to_global(tensor.detach(), placement, sbp).as_parameter(tensor.requires_grad)
                    module._parameters[name] = cast(torch.nn.Parameter, made)
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = to_global(buffer, placement, sbp)
        return self

    to_local = refuse("Module.to_local")
    to_consistent = refuse("Module.to_consistent")


_made: dict[type, type] = {}

_PARAMETERS = {
    "BCELoss": "weight reduction",
    "BCEWithLogitsLoss": "weight reduction pos_weight",
    "ConstantPad1d": "padding value=0",
    "ConstantPad2d": "padding value=0",
    "ConstantPad3d": "padding value=0",
    "CrossEntropyLoss": "weight ignore_index reduction label_smoothing",
    "Dropout": "p inplace generator",
    "Dropout1d": "p inplace generator",
    "Dropout2d": "p inplace generator",
    "Dropout3d": "p inplace generator",
    "KLDivLoss": "reduction log_target",
    "L1Loss": "reduction",
    "MSELoss": "reduction",
    "MarginRankingLoss": "margin reduction",
    "NLLLoss": "weight ignore_index reduction",
    "RMSNorm": "normalized_shape eps=1e-05 elementwise_affine device dtype",
    "SmoothL1Loss": "reduction beta",
}
"""The parameters of constructors whose order or defaults differ from torch's."""


def adapt_class(kind: type[torch.nn.Module]) -> type[Module]:
    """Return a subclass of ``kind`` with the methods of ``Module``; always the same class for the same ``kind``.

    Its argument ``device`` accepts OneFlow's devices.
    """
    if kind not in _made:
        own = [parameter.partition("=") for parameter in _PARAMETERS.get(kind.__name__, "").split()]
        defaults = {name: ast.literal_eval(value) for name, equals, value in own if equals}

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            named = zip((name for name, _, _ in own), args, strict=False) if own else ()
            given = {**defaults, **dict(named), **kwargs}
            given.pop("generator", None)
            kind.__init__(self, *(() if own and len(args) <= len(own) else args), **resolve_device(given))

        members = {
            "__init__": __init__,
            "__module__": "collshim.oneflow.nn",
            "__doc__": kind.__doc__,
            "_torch_class": kind,
        }
        _made[kind] = _ModuleType(kind.__name__, (Module, kind), members)
    return _made[kind]


def adapt(name: str, value: Any) -> Any:
    """Adapt a module class of ``torch.nn`` to ``oneflow.nn``; other values are unchanged."""
    if isinstance(value, type) and issubclass(value, torch.nn.Module) and not issubclass(value, Module):
        return adapt_class(value)
    return value
