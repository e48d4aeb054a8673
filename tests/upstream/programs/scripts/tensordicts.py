"""tensordict: nested dictionaries of tensors that are sent, reduced, broadcast and gathered as wholes."""

from __future__ import annotations

import torch
import torch.distributed as dist
from tensordict import TensorDict

from tests.upstream.programs.ranks import run_named


def own(value: float) -> TensorDict:
    """Return a nested dictionary of three dtypes."""
    double = torch.full((3, 2), value, dtype=torch.float64)
    inner = TensorDict({"long": torch.arange(3) + int(value), "double": double}, [3])
    return TensorDict({"float": torch.full((3, 4), value), "inner": inner}, [3])


def require(found: TensorDict, value: float) -> float:
    """Check that it is the dictionary of ``value``; return the sum of its numbers."""
    for key in ("float", ("inner", "long"), ("inner", "double")):
        torch.testing.assert_close(found[key], own(value)[key])
    return float(sum(leaf.double().sum() for leaf in found.values(include_nested=True, leaves_only=True)))


def messages(rank: int, size: int) -> object:
    """Send rank 0's dictionary to the others: in place, with its structure, and not waited for at once."""
    if rank == 0:
        for other in range(1, size):
            own(5).send(other)
            own(6).init_remote(dst=other)
            own(7).isend(other)
        return []
    found = own(-1)
    found.recv(0)
    with_structure = TensorDict.from_remote_init(src=0)
    late = own(-1)
    for work in late.irecv(0, return_premature=True):
        work.wait()
    return [require(found, 5), require(with_structure, 6), require(late, 7)]


def collectives(rank: int, size: int) -> object:
    """Reduce, broadcast and gather."""
    total, largest = (TensorDict({"a": torch.full((2,), rank + 1.0)}, [2]) for _ in range(2))
    total.all_reduce()
    largest.all_reduce(op=dist.ReduceOp.MAX)
    assert (total["a"] == size * (size + 1) / 2).all(), total["a"]
    assert (largest["a"] == size).all(), largest["a"]
    broadcast = own(rank).broadcast(1) if rank == 1 else own(-1).broadcast(1)
    gathered = own(rank).all_gather()
    return [require(broadcast, 1), [require(found, other) for other, found in enumerate(gathered)]]


run_named({"messages": messages, "collectives": collectives})
