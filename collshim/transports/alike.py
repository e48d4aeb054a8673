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


_FRESH = ("all_reduce", "all_gather")
"""Of these one result is computed for all."""

REDUCED: dict[Any, Callable[..., Tensor]] = {
    "sum": torch.add,
    "prod": torch.mul,
    "min": torch.minimum,
    "max": torch.maximum,
}


def serve(signature: Signature, seats: Sequence[Asked]) -> list[Tensor]:
    """Every rank's result, in its own place or in memory that no other rank has."""
    results = _RESULTS[signature.op](signature, [seat.inputs for seat in seats])
    spare = signature.op in _FRESH
    served = []
    for seat, result in zip(seats, results, strict=True):
        target = seat.outputs
        if target is not None:
            served.append(target if target is result else target.copy_(result))
        else:
            served.append(result if spare else result.clone())
            spare = False  # the first rank without a place has the computed memory, the others copies
    return served


def _reduced(signature: Signature, inputs: list[Tensor]) -> Tensor:
    """In rank order, as the usual way does it."""
    fold = REDUCED[signature.reduce_op]
    total = fold(inputs[0], inputs[1])
    for part in inputs[2:]:
        fold(total, part, out=total)
    return total


def _all_reduce(signature: Signature, inputs: list[Tensor]) -> list[Tensor]:
    return [_reduced(signature, inputs)] * len(inputs)


def _reduce_scatter(signature: Signature, inputs: list[Tensor]) -> list[Tensor]:
    return list(_reduced(signature, inputs).unbind(0))


def _all_gather(signature: Signature, inputs: list[Tensor]) -> list[Tensor]:
    return [torch.stack(inputs)] * len(inputs)


def _all_to_all(signature: Signature, inputs: list[Tensor]) -> list[Tensor]:
    return list(torch.stack(inputs, dim=1).unbind(0))


def _broadcast(signature: Signature, inputs: list[Tensor]) -> list[Tensor]:
    return [inputs[signature.root or 0]] * len(inputs)


_RESULTS: dict[str, Callable[[Signature, list[Tensor]], list[Tensor]]] = {
    "all_reduce": _all_reduce,
    "reduce_scatter": _reduce_scatter,
    "all_gather": _all_gather,
    "all_to_all": _all_to_all,
    "broadcast": _broadcast,
}
