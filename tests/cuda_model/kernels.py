"""aten's CUDA kernels, each as an operation of its stream that computes on the CPU, in the same memory.

Device memory is memory of the host, so the kernel for the CPU, applied to tensors that alias the device's, does the
same as the kernel for CUDA. One generic function replaces all of them: it finds the result's shape with ``meta``
tensors, lets torch's own allocator make the memory, and posts the computation on the current stream, with the memory
that it reads and writes.

Not modelled: the numerics of CUDA's kernels, and kernels that are not an operator of aten's. An operator with a shape
that depends on data waits for its stream, like the real one.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from tests.cuda_model.model import enqueue

_KEPT = (
    *("empty", "empty_strided", "as_strided", "view", "_reshape_alias", "set_", "resize_", "record_stream"),
    *("is_pinned", "_pin_memory", "unfold", "is_set_to", "view_as_real", "view_as_complex", "copy_"),
    *("_efficientzerotensor", "_has_same_storage_numel"),
)
"""Operators that compute nothing on the device; and ``copy_``, which is implemented here."""

_SYNCHRONIZING = (
    *("_local_scalar_dense", "equal", "nonzero", "masked_select", "is_nonzero"),
    *("_unique2", "unique_dim", "unique_consecutive"),
)

_library = torch.library.Library("aten", "IMPL")


def install() -> int:
    """Replace the kernels by the stand-ins and return their number."""
    count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns for every replaced kernel
        for full_name in torch._C._dispatch_get_all_op_names():
            name = full_name.removeprefix("aten::")
            base, _, overload = name.partition(".")
            if name == full_name or base in _KEPT or not hasattr(torch.ops.aten, base):
                continue
            packet = getattr(torch.ops.aten, base)
            if not torch._C._dispatch_has_kernel_for_dispatch_key(full_name, "CUDA"):
                continue
            if hasattr(packet, overload or "default"):
                kernel = _Kernel(getattr(packet, overload or "default"))
                _library.impl(name, kernel.__call__, "CUDA", allow_override=True)
                count += 1
        _library.impl("copy_", _copy, "CUDA", allow_override=True)
    return count


class _Kernel:
    """The stand-in for one operator's kernel."""

    def __init__(self, operator: Any) -> None:
        schema = operator._schema
        self._operator = operator
        self._label = operator.name().removeprefix("aten::")
        self._names = [argument.name for argument in schema.arguments]
        self._takes_tensor = [str(argument.type) in ("Tensor", "Optional[Tensor]") for argument in schema.arguments]
        self._written = [
            argument.name for argument in schema.arguments if argument.alias_info and argument.alias_info.is_write
        ]
        self._returns = len(schema.returns)
        self._synchronizes = self._label.partition(".")[0] in _SYNCHRONIZING

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        on_device = [tensor for tensor in given if tensor.is_cuda]
        if len({tensor.device for tensor in on_device}) > 1:
            raise RuntimeError(f"Expected all tensors to be on the same device ({self._label})")
        device = _device(on_device, kwargs)
        bound = dict(zip(self._names, args, strict=False)) | kwargs
        written = [leaf for name in self._written for leaf in tree_leaves(bound.get(name)) if isinstance(leaf, Tensor)]
        if written:
            return self._write(device, args, kwargs, on_device, written)
        return self._make(device, args, kwargs, on_device)

    def _apply(self, args: Any, kwargs: Any) -> Any:
        """Call the operator; a number that torch wrapped in a tensor arrives as Python's, and selects its overload."""
        pairs = zip(args, self._takes_tensor, strict=False)
        if any(takes and isinstance(argument, int | float | complex) for argument, takes in pairs):
            return self._operator.overloadpacket(*args, **kwargs)
        return self._operator(*args, **kwargs)

    def _shaped(self, args: Any, kwargs: Any) -> Any:
        """Return the results as ``meta`` tensors; None if they depend on data."""
        try:
            return self._apply(*tree_map(_meta, (list(args), kwargs)))
        except (NotImplementedError, RuntimeError):
            return None

    def _write(
        self, device: torch.device, args: Any, kwargs: Any, given: Sequence[Tensor], written: Sequence[Tensor]
    ) -> Any:
        """Run an operator that writes to its arguments."""
        if "out" in self._label:
            shaped = [leaf for leaf in tree_leaves(self._shaped(args, kwargs)) if isinstance(leaf, Tensor)]
            for own, meta in zip(written, shaped, strict=False):
                if own.shape != meta.shape:
                    own.resize_(meta.shape)
        on_cpu = _aliased(args, kwargs)
        enqueue(device, lambda: self._apply(*on_cpu), given, written, self._label)
        if self._returns == 1:
            return written[0]
        return tuple(written) if self._returns else None

    def _make(self, device: torch.device, args: Any, kwargs: Any, given: Sequence[Tensor]) -> Any:
        """Run an operator that makes its results."""
        on_cpu = _aliased(args, kwargs)
        shaped = None if self._synchronizes else self._shaped(args, kwargs)
        if shaped is None:
            _synchronize(device, self._label)
            return tree_map(lambda made: _onto(device, made, self._label), self._apply(*on_cpu))
        results = tree_map(lambda meta: _like(meta, device), shaped)
        made = [leaf for leaf in tree_leaves(results) if isinstance(leaf, Tensor)]
        places = [alias(tensor) for tensor in made]

        def step() -> None:
            found = [leaf for leaf in tree_leaves(self._apply(*on_cpu)) if isinstance(leaf, Tensor)]
            for place, result in zip(places, found, strict=True):
                place.copy_(result)

        enqueue(device, step, given, made, self._label)
        return results


def _device(given: Sequence[Tensor], kwargs: dict[str, Any]) -> torch.device:
    device = given[0].device if given else torch.device(kwargs.get("device") or "cuda")
    return torch.device("cuda", torch.cuda.current_device()) if device.index is None else device


def _meta(leaf: Any) -> Any:
    if isinstance(leaf, torch.device):
        return torch.device("meta")
    return _like(leaf, torch.device("meta"))


def _like(leaf: Any, device: torch.device) -> Any:
    """Allocate a tensor of the same layout."""
    if not isinstance(leaf, Tensor):
        return leaf
    return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device=device)


def _aliased(args: Any, kwargs: Any) -> Any:
    """Return the arguments for the CPU's kernel, with host tensors as they are now."""
    known: dict[int, Tensor] = {}

    def on_cpu(leaf: Any) -> Any:
        if isinstance(leaf, torch.device):
            return torch.device("cpu")
        if not isinstance(leaf, Tensor):
            return leaf
        if id(leaf) not in known:
            known[id(leaf)] = alias(leaf) if leaf.is_cuda else leaf.clone()
        return known[id(leaf)]

    return tree_map(on_cpu, (list(args), kwargs))


def alias(tensor: Tensor) -> Tensor:
    """Return the CPU's view of a device tensor's memory."""
    storage = tensor.untyped_storage()
    if storage.nbytes() == 0:
        found = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
    else:
        memory = (ctypes.c_ubyte * storage.nbytes()).from_address(storage.data_ptr())
        raw = torch.frombuffer(memory, dtype=torch.uint8).untyped_storage()
        found = torch.empty(0, dtype=tensor.dtype, device="cpu")
        found.set_(raw, tensor.storage_offset(), tensor.size(), tensor.stride())
    if tensor.is_conj():
        found = found.conj()
    return torch._neg_view(found) if tensor.is_neg() else found


def _onto(device: torch.device, made: Any, label: str) -> Any:
    if not isinstance(made, Tensor):
        return made
    out = _like(made, device)
    place = alias(out)
    enqueue(device, lambda: place.copy_(made), [], [out], label)
    return out


def _synchronize(device: torch.device, what: str) -> None:
    """Let the host wait here, visibly to torch's debug mode."""
    if torch.cuda.get_sync_debug_mode() == 2:
        raise RuntimeError(f"called a synchronizing CUDA operation ({what})")
    torch.cuda.current_stream(device).synchronize()


def _copy(own: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    if own.is_cuda and source.is_cuda:
        _copy_on_device(own, source)
    elif own.is_cuda:
        kept, place = source.detach().clone(), alias(own)
        if not non_blocking and torch.cuda.get_sync_debug_mode() == 2:
            raise RuntimeError("called a synchronizing CUDA operation (copy from the host)")
        enqueue(own.device, lambda: place.copy_(kept), [], [own], "copy_ from the host")
    else:
        if non_blocking:
            torch.cuda.current_stream(source.device).synchronize()
        else:
            _synchronize(source.device, "copy to the host")
        own.copy_(alias(source))
    return own


def _copy_on_device(own: Tensor, source: Tensor) -> None:
    """Copy between devices on the first one's stream, which waits for the other's before, and is waited for after."""
    if not own.numel() or _layout(own) == _layout(source):
        return
    place, made = alias(own), alias(source)
    here, there = torch.cuda.current_stream(own.device), torch.cuda.current_stream(source.device)
    if here != there:
        there.wait_stream(here)
    enqueue(source.device, lambda: place.copy_(made), [source], [own], "copy_")
    if here != there:
        here.wait_stream(there)


def _layout(tensor: Tensor) -> tuple[Any, ...]:
    """Return a key that is equal for equal tensors."""
    memory = tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype
    return *memory, tensor.is_conj(), tensor.is_neg()
