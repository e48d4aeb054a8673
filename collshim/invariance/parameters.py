"""The parameters of a step on one rank: their names, initial values and gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel
from torch.distributed.tensor import DTensor, Replicate

from collshim.invariance.records import Parameter, Place

_SHARDING = (FullyShardedDataParallel, FSDPModule)

_WRAPPERS = ("module", "_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module")
"""Names under which a wrapper holds the module that it wraps."""


def plain_name(name: str) -> str:
    """Return a parameter's name without the parts that wrappers add, so that it is the same with and without them."""
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS) or name


def is_distributed(value: Any) -> bool:
    """Return whether a value is a DTensor."""
    return isinstance(value, DTensor)


def local(tensor: Tensor) -> Tensor:
    """Return this rank's part of a tensor, detached."""
    part = tensor._local_tensor if isinstance(tensor, DTensor) else tensor
    return part.detach()


def kept(tensor: Tensor) -> Tensor:
    """Return a dense copy of this rank's part of a tensor, in the host's memory."""
    part = local(tensor)
    return (part.to_dense() if part.is_sparse else part).cpu().clone()


def place_of(tensor: Tensor) -> Place | None:
    """Return where this rank's part of a DTensor lies; None for other tensors."""
    if not isinstance(tensor, DTensor):
        return None
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    _, offsets = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)
    return Place(tuple(offsets), tuple(tensor.shape))


class Parameters:
    """The parameters that a step has used so far, each with its number in order of its first use.

    Attributes:
        on_arrival: is called in a backward pass with a parameter's number, and its gradient after all hooks.
    """

    def __init__(self) -> None:
        self.on_arrival: Callable[[int, Tensor], None] = lambda number, gradient: None
        self.records: list[Parameter] = []
        self._tensors: list[Tensor] = []
        self._numbers: dict[int, int] = {}
        self._modules: set[int] = set()
        self._is_sharded = False
        self._roots = 0
        self._hooks: dict[int, list[tuple[str, ...]]] = {}
        self._kept: list[Any] = []  # keeps them alive: no id in _hooks is reused, and no autograd node is recreated
        self._arriving = (0, -1)

    def __len__(self) -> int:
        return len(self.records)

    def has(self, module: nn.Module) -> bool:
        """Return whether a module, or a module that contains it, was added."""
        return id(module) in self._modules

    def add_module(self, module: nn.Module, prefix: str | None = None) -> None:
        """Add the parameters of a module that the program calls."""
        self._modules.update(map(id, module.modules()))
        self._is_sharded = self._is_sharded or any(isinstance(inner, _SHARDING) for inner in module.modules())
        watch = not self._is_sharded
        self._roots += 1
        taken = {name for record in self.records for name in record.names}
        named = dict[int, list[str]]()
        tensors = dict[int, Tensor]()
        for name, tensor in module.named_parameters(remove_duplicate=False):
            named.setdefault(id(tensor), []).append(plain_name(f"{prefix}.{name}" if prefix else name))
            tensors[id(tensor)] = tensor
        for key, names in named.items():
            clashes = key not in self._numbers and not taken.isdisjoint(names)
            own = [f"{name} of model {self._roots}" for name in names] if clashes else names
            self.add(tensors[key], own, watch=watch)

    def add_leaves(self, tensors: Iterable[Tensor]) -> None:
        """Add tensors that need a gradient and belong to no module that was called.

        ``fully_shard`` computes with its own tensors instead of the parameters, so these are not added.
        """
        for tensor in tensors if not self._is_sharded else ():
            if id(tensor) not in self._numbers:
                self.add(tensor, [f"tensor {len(self)} of shape {tuple(tensor.shape)}"])

    def add(self, tensor: Tensor, names: Sequence[str], *, watch: bool = True) -> None:
        """Add a parameter with its current value; if it was added before, only replace its names with longer ones."""
        number = self._numbers.get(id(tensor))
        if number is not None:
            known = self.records[number]
            if len(names[0]) > len(known.name) or known.name.startswith("tensor "):
                known.names = tuple(names)
            return
        hooks = self._hooks.setdefault(id(tensor), [])
        record = Parameter(tuple(names), kept(tensor), place=place_of(tensor), hooks=hooks)
        self._numbers[id(tensor)] = len(self.records)
        self.records.append(record)
        self._tensors.append(tensor)
        if watch and tensor.requires_grad and tensor.is_leaf and not isinstance(tensor, DTensor):
            self._watch(len(self.records) - 1, tensor)

    def _watch(self, number: int, tensor: Tensor) -> None:
        """Record the gradient that a backward pass computes, before and after all of the program's hooks."""

        def first(gradient: Tensor) -> None:
            self._arriving = address_of(local(gradient)), number
            _accumulate(self.records[number], tensor, gradient)

        def last(gradients: tuple[Tensor | None, ...]) -> None:
            if gradients[0] is not None:
                self.on_arrival(number, gradients[0])
            self._arriving = 0, -1

        tensor.register_hook(first)
        hooks: Any = tensor._backward_hooks
        *others, own = hooks.items()
        hooks.clear()
        hooks.update([own, *others])
        with torch.enable_grad():
            node: Any = tensor.view_as(tensor).grad_fn
        self._kept.append(node.next_functions[0][0])
        self._kept[-1].register_prehook(last)

    def add_hook(self, tensor: Tensor, sites: tuple[str, ...]) -> None:
        """Record the line that registers a hook on a tensor's gradient."""
        self._kept.append(tensor)
        self._hooks.setdefault(id(tensor), []).append(sites)

    def select(self, modules: Sequence[tuple[str, nn.Module | Tensor]]) -> None:
        """Use the names from the modules that the step returned, and compare only the parameters of these modules."""
        for record in self.records:
            record.is_compared = False
        for prefix, module in modules:
            own = Parameters()
            if isinstance(module, nn.Module):
                own.add_module(module, prefix)
            else:
                own.add(module, [prefix])
            for record, tensor in zip(own.records, own._tensors, strict=True):
                number = self._numbers.setdefault(id(tensor), len(self.records))
                if number == len(self.records):
                    self.records.append(record)
                    self._tensors.append(tensor)
                self.records[number].names = record.names
                self.records[number].is_compared = True

    def set_values(self, values: dict[int, Tensor]) -> None:
        """Write initial values, by parameter number, into the parameters that were added so far."""
        for number in [number for number in values if number < len(self.records)]:
            target = local(self._tensors[number])
            (target[: len(values[number])] if target.dim() == 1 else target).copy_(values[number])  # not the padding
            self.records[number].value = values.pop(number)

    def numbers_at(self, address: int) -> list[int]:
        """Return the numbers of the parameters whose memory, or whose gradient's memory, begins at an address."""
        own = [number for number, tensor in enumerate(self._tensors) if address_of(local(tensor)) == address]
        return own + [number for number in self.gradients_at(address) if number not in own]

    def gradients_at(self, address: int) -> list[int]:
        """Return the numbers of the parameters whose gradients, even if still being computed, are at an address."""
        arriving, number = self._arriving
        found = [number] if address and address == arriving else []
        return found + [
            number for number, tensor in enumerate(self._tensors) if address == _address_of_gradient(tensor)
        ]

    def take_stepped(self, tensors: Iterable[Tensor]) -> None:
        """Keep the current gradients of the parameters that an optimizer is about to step."""
        stepped = {id(tensor) for tensor in tensors}
        for record, tensor in zip(self.records, self._tensors, strict=True):
            record.is_stepped = record.is_stepped or id(tensor) in stepped
        self.take_gradients(stepped)

    def take_gradients(self, chosen: set[int] | None = None) -> None:
        """Keep the current gradients of all parameters, or of the ``chosen``, unless a gradient was kept before."""
        for record, tensor in zip(self.records, self._tensors, strict=True):
            if chosen is not None and id(tensor) not in chosen:
                continue
            gradient: Any = tensor.grad
            if record.gradient is None and gradient is not None:
                record.gradient = kept(summed(gradient))

    def take_values(self) -> None:
        """Keep the current values if they differ from the initial ones."""
        for record, tensor in zip(self.records, self._tensors, strict=True):
            now = kept(tensor)
            if record.value is None or now.shape != record.value.shape or not torch.equal(now, record.value):
                record.after = now


def summed(gradient: Any) -> Any:
    """Return a gradient, summed over the ranks if it is a partial DTensor, as an optimizer would use it."""
    if not isinstance(gradient, DTensor) or not any(placement.is_partial() for placement in gradient.placements):
        return gradient
    placements = [Replicate() if placement.is_partial() else placement for placement in gradient.placements]
    return gradient.redistribute(placements=placements)


def _accumulate(record: Parameter, tensor: Tensor, gradient: Tensor) -> None:
    """Add a backward pass's gradient to the recorded one, or start again if the program has cleared its own."""
    if record.gradient is not None:  # the gradient of the first step is already kept
        return
    own = kept(gradient)
    before: Any = tensor.grad
    is_cleared = before is None or not bool(local(before).any())
    record.raw = own if record.raw is None or is_cleared else record.raw + own


def _address_of_gradient(tensor: Tensor) -> int:
    gradient: Any = tensor.grad
    return -1 if gradient is None else address_of(local(gradient))


def address_of(tensor: Tensor) -> int:
    """Return the address of a tensor's memory; 0 if it has none."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # a sparse tensor, or one that wraps others
        return 0
