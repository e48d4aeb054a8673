"""Names of GPUs that mean the CPU, in torch itself, while torch has a stand-in: for programs that are written for GPUs.

Tensors and modules that a program puts on "cuda", ``cuda:1`` or the number of a GPU stay on the CPU, as do meshes,
autocast, and what ``torch.load`` restores. DistributedDataParallel takes the numbers of GPUs and ignores them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed import device_mesh
from torch.overrides import TorchFunctionMode

from collshim.adapting import devices
from collshim.torch import cuda, sync_batch_norm
from collshim.torch.distributed import libraries


def cpu_for(device: Any, *, numbers: bool = True) -> Any:
    """Return the CPU for a name or, with ``numbers``, a number of a GPU; anything else unchanged.

    Raises:
        RuntimeError: the number is beyond the GPUs that the program sees.
    """
    if isinstance(device, torch.device | str):
        is_gpu = str(device).partition(":")[0] == "cuda"
    else:
        is_gpu = numbers and type(device) is int
    if not is_gpu:
        return device
    cpu = devices.resolve(f"cuda:{device}" if type(device) is int else str(device))
    return "cpu" if isinstance(device, str) else cpu


class _OnCPU(TorchFunctionMode):
    """Passes the CPU to torch's functions instead of GPUs."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func in (Tensor.cuda, Tensor.pin_memory):
            cpu_for(args[1] if len(args) > 1 else (kwargs or {}).get("device"))  # refuses a number that is too large
            return args[0]
        if func is torch.device:
            return _device(*args, **(kwargs or {}))
        by_name = dict(kwargs or {})
        if "device" in by_name:
            by_name["device"] = cpu_for(by_name["device"])
        takes_number = func is Tensor.to
        places = [cpu_for(one, numbers=takes_number and place == 1) for place, one in enumerate(args)]
        return func(*places, **by_name)


def _device(type: Any, index: int | None = None) -> Any:
    """Return what ``torch.device`` returns; for a GPU, by name, by number or both, the CPU."""
    named = type if index is None else f"{type}:{index}"
    found = cpu_for(named)
    return torch.device(named) if found is named else torch.device("cpu")


def _taking_names(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function or method that replaces the name of a GPU among its first arguments with the CPU."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        by_name = {name: cpu_for(value) if name in _NAMES else value for name, value in kwargs.items()}
        return function(*map(cpu_for, args[:_FIRST]), *args[_FIRST:], **by_name)

    return call


_NAMES = ("device", "device_type", "map_location")
_FIRST = 2
"""The device is the first argument, or comes after ``self`` or the file."""


def _without_numbers(init: Callable[..., None]) -> Callable[..., None]:
    """Return DistributedDataParallel's ``__init__``, which takes numbers of GPUs only for modules on GPUs."""

    @functools.wraps(init)
    def call(
        self: Any, module: Any, device_ids: Any = None, output_device: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        init(self, module, None, None, *args, **kwargs)

    return call


def _without_effect(method: Callable[..., None]) -> Callable[..., None]:
    """Return a method that does nothing: torch's takes only streams of GPUs, or refuses SyncBatchNorm on the CPU."""

    @functools.wraps(method)
    def call(self: Any, argument: Any) -> None:
        del argument

    return call


def _pretend(undo: ExitStack) -> None:
    """Let names of GPUs mean the CPU on this thread, until ``undo`` is closed."""
    places: list[tuple[Any, str, Callable[..., Any]]] = [
        (Tensor, "record_stream", _without_effect),
        (nn.Module, "to", _taking_names),
        (nn.parallel.DistributedDataParallel, "__init__", _without_numbers),
        (nn.parallel.DistributedDataParallel, "_passing_sync_batchnorm_handle", _without_effect),
        (nn.SyncBatchNorm, "forward", sync_batch_norm.on_cpu),
        (device_mesh.DeviceMesh, "__init__", _taking_names),
        (torch.autocast, "__init__", _taking_names),
        (torch, "load", _taking_names),
        (torch, "set_default_device", _taking_names),
    ]
    replaced = [(owner, name, replacing(getattr(owner, name))) for owner, name, replacing in places]
    replaced += cuda.for_libraries()
    for owner, name, value in replaced:
        undo.callback(setattr, owner, name, getattr(owner, name))
        setattr(owner, name, value)
    undo.enter_context(_OnCPU())


def replace() -> Callable[[], None]:
    """Replace functions in torch itself while it has a stand-in; return a function that restores them."""
    with ExitStack() as undo:
        undo.callback(libraries.replace())
        if devices.is_pretended():
            _pretend(undo)
        return undo.pop_all().close
