"""Forms of one collective that ranks can mix in one call: stacked, listed, concatenated, with and without an output.

Each scenario makes one call on two ranks, each in its own form, and returns whether the result is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor

from collshim import Communicator

SIZE = 2
LENGTHS = {"within the check": 3, "beyond 1 KiB": 1000, "beyond 2 MB": 600_000}
"""Elements of a part, of four bytes: small data travels with the check; up to 2 MB one thread computes all results."""

Call = Callable[[Communicator, Tensor], Any]
"""Makes the call; its argument is a part, or is rank-leading if a rank gives one part per rank."""


def _given(length: int, rank: int, taker: int = 0) -> Tensor:
    return torch.arange(length, dtype=torch.float32) + 1000 * rank + 100_000 * taker


def _parts(length: int, rank: int) -> Tensor:
    return torch.stack([_given(length, rank, taker) for taker in range(SIZE)])


def _gathered(length: int, rank: int) -> Tensor:
    return torch.stack([_given(length, giver) for giver in range(SIZE)])


def _exchanged(length: int, rank: int) -> Tensor:
    return torch.stack([_given(length, giver, rank) for giver in range(SIZE)])


def _summed(length: int, rank: int) -> Tensor:
    return _exchanged(length, rank).sum(0)


def _empty(parts: Tensor) -> list[Tensor]:
    return [torch.empty_like(part) for part in parts]


def _flat(parts: Tensor) -> Tensor:
    return torch.empty(parts.numel())


def _two(x: Tensor) -> Tensor:
    return torch.empty(SIZE, *x.shape)


def _even(x: Tensor) -> tuple[list[int], list[int]]:
    """Return splits of equal parts."""
    lengths = [x.shape[1]] * SIZE
    return lengths, lengths


ALL_TO_ALL: dict[str, Call] = {
    "stacked": lambda comm, x: comm.all_to_all(x),
    "stacked into stacked": lambda comm, x: comm.all_to_all(x, out=torch.empty_like(x)),
    "stacked into a list": lambda comm, x: comm.all_to_all(x, out=_empty(x)),
    "end to end": lambda comm, x: comm.all_to_all(x.flatten(), out=_flat(x)),
    "a list": lambda comm, x: comm.all_to_all(list(x)),
    "a list into a list": lambda comm, x: comm.all_to_all(list(x), out=_empty(x)),
    "a list into stacked": lambda comm, x: comm.all_to_all(list(x), out=torch.empty_like(x)),
    "a list with shapes": lambda comm, x: comm.all_to_all(list(x), shapes=[tuple(x.shape[1:])] * SIZE),
    "splits": lambda comm, x: comm.all_to_all(x.flatten(), out=_flat(x), splits=_even(x)),
}
ALL_GATHER: dict[str, Call] = {
    "stacked": lambda comm, x: comm.all_gather(x),
    "into stacked": lambda comm, x: comm.all_gather(x, out=_two(x)),
    "into a list": lambda comm, x: comm.all_gather(x, out=_empty(_two(x))),
    "end to end": lambda comm, x: comm.all_gather(x, out=_flat(_two(x))),
    "ragged": lambda comm, x: comm.all_gather_ragged(x),
}
GATHER: dict[str, Call] = {
    "stacked": lambda comm, x: comm.gather(x, 1),
    "into stacked": lambda comm, x: comm.gather(x, 1, out=_two(x) if comm.rank else None),
    "into a list": lambda comm, x: comm.gather(x, 1, out=_empty(_two(x)) if comm.rank else None),
    "ragged": lambda comm, x: comm.gather_ragged(x, 1),
}
SCATTER: dict[str, Call] = {
    "stacked, like": lambda comm, x: comm.scatter(None if comm.rank else x, like=x[0] if comm.rank else None),
    "a list, into": lambda comm, x: comm.scatter(None if comm.rank else list(x), out=torch.empty_like(x[0])),
    "a list": lambda comm, x: comm.scatter(None if comm.rank else list(x)),
}
REDUCE_SCATTER: dict[str, Call] = {
    "stacked": lambda comm, x: comm.reduce_scatter(x),
    "a list": lambda comm, x: comm.reduce_scatter(list(x)),
    "a list into a place": lambda comm, x: comm.reduce_scatter(list(x), out=torch.empty_like(x[0])),
    "end to end": lambda comm, x: comm.reduce_scatter(x.flatten(), out=torch.empty_like(x[0])),
}
BROADCAST: dict[str, Call] = {
    "in place": lambda comm, x: comm.broadcast(x, out=x),
    "into a place": lambda comm, x: comm.broadcast(x, out=torch.empty_like(x)),
    "apart": lambda comm, x: comm.broadcast(x),
    "nothing off the root": lambda comm, x: comm.broadcast(None if comm.rank else x),
}
FORMS: dict[str, tuple[dict[str, Call], Callable[..., Tensor], Callable[[int, int], Tensor]]] = {
    "all_to_all": (ALL_TO_ALL, _parts, _exchanged),
    "all_gather": (ALL_GATHER, _given, _gathered),
    "gather": (GATHER, _given, _gathered),
    "scatter": (SCATTER, _parts, lambda length, rank: _given(length, 0, rank)),
    "reduce_scatter": (REDUCE_SCATTER, _parts, _summed),
    "broadcast": (BROADCAST, _given, lambda length, rank: _given(length, 0)),
}
"""The forms of each collective, the input of a rank, and its result."""

NEEDS_CHECK = {("scatter", "a list"), *product(FORMS, ["ragged", "nothing off the root"])}
"""Forms for which a rank learns shapes from the others; with the check off all must request that."""


def pairs(collective: str, checked: bool) -> list[tuple[str, ...]]:
    """Return every pair of forms of rank 0 and rank 1."""
    forms = [form for form in FORMS[collective][0] if checked or (collective, form) not in NEEDS_CHECK]
    return list(product(forms, repeat=SIZE))


def _meets(collective: str, pair: Sequence[str], length: int, comm: Communicator) -> bool:
    forms, given, expected = FORMS[collective]
    rank = comm.rank
    found = forms[pair[rank]](comm, given(length, rank)).wait()
    if collective == "gather" and rank == 0:
        return found is None
    whole = torch.stack(found) if isinstance(found, list) else found
    return torch.equal(whole.flatten(), expected(length, rank).flatten())


def scenarios(collective: str, length: str, checked: bool) -> dict[str, partial[Any]]:
    return {
        " beside ".join(pair): partial(_meets, collective, pair, LENGTHS[length]) for pair in pairs(collective, checked)
    }


def unequal_elsewhere(length: int, comm: Communicator) -> bool:
    """Rank 0 gives and gets equal parts, stacked; the other ranks' lists have longer parts for each other."""
    rank, size = comm.rank, comm.size

    def part(giver: int, taker: int) -> Tensor:
        return _given(length * (1 + giver * taker), giver, taker)

    mine, expected = [part(rank, peer) for peer in range(size)], [part(peer, rank) for peer in range(size)]
    if rank == 0:
        stacked = torch.stack(mine)
        found = [comm.all_to_all(stacked, out=torch.empty_like(stacked)).wait()]
        found += [comm.all_to_all(stacked).wait()]
        return all(torch.equal(one, torch.stack(expected)) for one in found)
    places = [torch.empty_like(one) for one in expected]
    lists = [comm.all_to_all(mine, out=places).wait()]
    lists += [comm.all_to_all(mine, shapes=[tuple(one.shape) for one in expected]).wait()]
    return all(torch.equal(*both) for found in lists for both in zip(found, expected, strict=True))
