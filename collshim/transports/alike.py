"""Small calls of threads that ask for plain arrays alike: computed once, by the last rank to come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor


class Signature(NamedTuple):
    """What ranks must have alike for the short way; the shape is that of the whole input."""

    op: str
    shape: torch.Size
    dtype: torch.dtype
    device: torch.device
    reduce_op: str | None
    root: int | None


class Asked(Protocol):
    """One rank's input, and where it wants its result; None for memory of its own."""

    @property
    def inputs(self) -> Any:
        """The input."""
        ...

    @property
    def outputs(self) -> Any:
        """The place of the result."""
        ...


REDUCED: dict[Any, Callable[..., Tensor]] = {
    "sum": torch.add,
    "prod": torch.mul,
    "min": torch.minimum,
    "max": torch.maximum,
}

Targets = Sequence["Tensor | None"]


def serve(signature: Signature, seats: Sequence[Asked]) -> list[Tensor]:
    """Every rank's result, in its own place or in memory that no other rank has."""
    return _SERVED[signature.op](signature, [seat.inputs for seat in seats], [seat.outputs for seat in seats])


def _reduced(signature: Signature, inputs: list[Tensor], target: Tensor | None = None) -> Tensor:
    """In rank order, as the usual way does it; nothing is written to ``target`` before every input is read."""
    fold = REDUCED[signature.reduce_op]
    total, spare = inputs[0], None
    for part in inputs[1:-1]:
        total = spare = fold(total, part, out=spare)
    return fold(total, inputs[-1], out=spare if target is None else target)


def _placed(result: Tensor, target: Tensor | None) -> Tensor:
    return result.clone() if target is None else target.copy_(result)


def _all_reduce(signature: Signature, inputs: list[Tensor], targets: Targets) -> list[Tensor]:
    total = _reduced(signature, inputs, targets[0])
    return [total, *(_placed(total, target) for target in targets[1:])]


def _reduce_scatter(signature: Signature, inputs: list[Tensor], targets: Targets) -> list[Tensor]:
    return [_placed(part, target) for part, target in zip(_reduced(signature, inputs).unbind(0), targets, strict=True)]


def _all_gather(signature: Signature, inputs: list[Tensor], targets: Targets) -> list[Tensor]:
    stacked = torch.stack(inputs, out=targets[0])
    return [stacked, *(_placed(stacked, target) for target in targets[1:])]


def _all_to_all(signature: Signature, inputs: list[Tensor], targets: Targets) -> list[Tensor]:
    columns = zip(*(parts.unbind(0) for parts in inputs), strict=True)
    return [torch.stack(column, out=target) for column, target in zip(columns, targets, strict=True)]


def _broadcast(signature: Signature, inputs: list[Tensor], targets: Targets) -> list[Tensor]:
    source = inputs[signature.root or 0]
    return [source if target is source else _placed(source, target) for target in targets]


_SERVED: dict[str, Callable[[Signature, list[Tensor], Targets], list[Tensor]]] = {
    "all_reduce": _all_reduce,
    "reduce_scatter": _reduce_scatter,
    "all_gather": _all_gather,
    "all_to_all": _all_to_all,
    "broadcast": _broadcast,
}
