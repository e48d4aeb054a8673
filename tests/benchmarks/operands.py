"""Operands of a benchmarked call: zeros, which stay zeros however often they are summed in place."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Operands(NamedTuple):
    """The operands of one rank of ``size``, of ``nbytes`` each: in total if the operand consists of parts."""

    rank: int
    size: int
    nbytes: int

    @property
    def peer(self) -> int:
        """The other rank of two."""
        return 1 - self.rank

    def whole(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return a tensor of this rank's size."""
        return zeros(self._count(dtype), dtype=dtype)

    def stacked(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return memory for a whole of every rank."""
        return zeros(self.size, self._count(dtype), dtype=dtype)

    def strided(self) -> Tensor:
        """Return a whole that is every other element of its memory."""
        return zeros(self._count(torch.float32), 2)[:, 0]

    def parts(self) -> Tensor:
        """Return a whole as a part for each rank."""
        return zeros(self.size, max(1, self._count(torch.float32) // self.size))

    def part(self) -> Tensor:
        """Return one of the parts."""
        return self.parts()[0].clone()

    def splits(self) -> list[int]:
        """Return the elements that each of two ranks is sent, and sends: a quarter of a whole and the rest."""
        count = max(4, self._count(torch.float32))
        lengths = (count // 4, count - count // 4)
        return [lengths[(self.rank + peer) % 2] for peer in range(self.size)]

    def on_root(self, operand: Any) -> Any:
        """Return ``operand`` on rank 0, None elsewhere."""
        return operand if self.rank == 0 else None

    def value(self) -> bytes:
        """Return an object."""
        return bytes(self.nbytes)

    def values(self) -> list[Any]:
        """Return an object for each rank."""
        return [self.value()] * self.size

    def _count(self, dtype: torch.dtype) -> int:
        return max(1, self.nbytes // dtype.itemsize)


def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return zeros, written so that their pages exist."""
    return torch.empty(shape, dtype=dtype).fill_(0)


def separate(rows: Tensor) -> list[Tensor]:
    """Copy each row to memory of its own."""
    return [row.clone() for row in rows]


def with_flat(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """Return a tensor, and its flat view."""
    return tensor, tensor.view(-1)


def with_pieces(splits: list[int]) -> tuple[Any, ...]:
    """Return a tensor to be cut into ``splits``, and its pieces."""
    whole = zeros(sum(splits))
    return whole, list(whole.split(splits))


def as_numpy(operand: Any) -> Any:
    """Replace tensors by NumPy arrays of the same memory."""
    if isinstance(operand, list):
        return [as_numpy(item) for item in operand]
    return operand.numpy() if isinstance(operand, Tensor) else operand
