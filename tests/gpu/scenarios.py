"""The GPU tests' program of a rank: every collective, on an array of any kind and the same array once per rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from collshim import Communicator, Recv, Send, Work
from collshim.arrays.arithmetic import REDUCE_OPS, undefined_for
from collshim.layout import as_bytes

Post = Callable[[Communicator, Any, Any], Sequence[Work[Any]]]
"""Posts one collective of an array with at least as many rows as ranks, and of parts, rank-leading."""


def _dtypes(*names: str) -> list[torch.dtype]:
    """Return the named dtypes that this torch has."""
    return [getattr(torch, name) for name in names if hasattr(torch, name)]


NCCL_DTYPES = _dtypes(
    *("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "float8_e4m3fn", "float8_e5m2")
)
OTHER_DTYPES = _dtypes(
    *("bool", "int16", "uint16", "uint32", "uint64", "complex64", "complex128"),
    *("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"),
)
DTYPES = NCCL_DTYPES + OTHER_DTYPES


def _last(comm: Communicator) -> int:
    return comm.size - 1


def _own(array: Any) -> Any:
    """Return a writable copy."""
    return array.clone() if isinstance(array, Tensor) else array.copy()


def _on_root(comm: Communicator, array: Any) -> Any:
    return array if comm.rank == _last(comm) else None


def _shorter(array: Any, rank: int) -> Any:
    """Shorten by one row more on each rank, to unequal lengths."""
    return array[: len(array) - rank]


def _reduce_in_place(comm: Communicator, x: Any, parts: Any) -> list[Work[Any]]:
    own = _own(x)
    return [comm.all_reduce(own, out=own)]


def _broadcast_in_place(comm: Communicator, x: Any, parts: Any) -> list[Work[Any]]:
    own = _own(x)
    return [comm.broadcast(own, _last(comm), out=own)]


def _scattered(comm: Communicator, x: Any, parts: Any) -> list[Work[Any]]:
    return [comm.scatter(_on_root(comm, parts), _last(comm), like=x)]


def _scattered_list(comm: Communicator, x: Any, parts: Any) -> list[Work[Any]]:
    given = _on_root(comm, [_shorter(x, rank) for rank in range(comm.size)])
    return [comm.scatter(given, _last(comm), like=_shorter(x, comm.rank), discovers=True)]


def _exchanged_unequal(comm: Communicator, x: Any, parts: Any) -> list[Work[Any]]:
    return [comm.all_to_all([_shorter(x, rank) for rank in range(comm.size)], discovers=True)]


def _ring(comm: Communicator, x: Any, parts: Any) -> list[Work[Any]]:
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    return comm.batch([Recv(before, like=x), Send(x, after)])


MOVES: dict[str, Post] = {
    "broadcast": lambda comm, x, parts: [comm.broadcast(x, _last(comm))],
    "broadcast in place": _broadcast_in_place,
    "broadcast of what only the root knows": lambda comm, x, parts: [
        comm.broadcast(_on_root(comm, x), _last(comm), discovers=True)
    ],
    "all_gather": lambda comm, x, parts: [comm.all_gather(x)],
    "all_gather into a stacked array": lambda comm, x, parts: [comm.all_gather(x, out=_own(parts))],
    "all_gather into a list": lambda comm, x, parts: [comm.all_gather(x, out=[_own(x) for _ in range(comm.size)])],
    "all_gather of unequal arrays": lambda comm, x, parts: [comm.all_gather_ragged(_shorter(x, comm.rank))],
    "gather": lambda comm, x, parts: [comm.gather(x, _last(comm))],
    "gather of unequal arrays": lambda comm, x, parts: [comm.gather_ragged(_shorter(x, comm.rank), _last(comm))],
    "scatter": _scattered,
    "scatter of unequal arrays": _scattered_list,
    "all_to_all": lambda comm, x, parts: [comm.all_to_all(parts)],
    "all_to_all of a list": lambda comm, x, parts: [
        comm.all_to_all([x] * comm.size, out=[_own(x) for _ in range(comm.size)])
    ],
    "all_to_all of unequal arrays": _exchanged_unequal,
    "ring": _ring,
    "broadcast_coalesced": lambda comm, x, parts: [comm.broadcast_coalesced([x, x[:1]], _last(comm))],
    "all_gather_coalesced": lambda comm, x, parts: [comm.all_gather_coalesced([x, x[:1]])],
    "barrier": lambda comm, x, parts: [comm.barrier()],
}

SUMS: dict[str, Post] = {
    "all_reduce": lambda comm, x, parts: [comm.all_reduce(x)],
    "all_reduce in place": _reduce_in_place,
    "all_reduce into another": lambda comm, x, parts: [comm.all_reduce(x, out=_own(x))],
    "reduce": lambda comm, x, parts: [comm.reduce(x, _last(comm))],
    "reduce_scatter": lambda comm, x, parts: [comm.reduce_scatter(parts)],
    "reduce_scatter of a list": lambda comm, x, parts: [comm.reduce_scatter([x] * comm.size)],
    "all_reduce_coalesced": lambda comm, x, parts: [comm.all_reduce_coalesced([x, x[:1]])],
    "reduce_scatter_coalesced": lambda comm, x, parts: [comm.reduce_scatter_coalesced([parts, parts])],
}

ALL = MOVES | SUMS

HOST_WAITS = {name for name in ALL if "unequal" in name or "only the root knows" in name or name == "barrier"}
"""Calls before which the ranks exchange something that the host awaits."""


def numbers(dtype: torch.dtype, rank: int, shape: tuple[int, ...], device: torch.device | str) -> Tensor:
    """Return small positive integers that differ by rank, exact in every dtype and in every sum of a few."""
    count = torch.Size(shape).numel()
    values = (torch.arange(count) * 3 + rank) % 4 + 1
    plain = values.to(torch.float32) if dtype.is_floating_point else values
    return plain.to(dtype).view(shape).to(device)


def given(dtype: torch.dtype, comm: Communicator, device: torch.device | str, rows: int = 6) -> tuple[Tensor, Tensor]:
    """Return an array and parts of its shape: a rank's input to a scenario."""
    return numbers(dtype, comm.rank, (rows, 3), device), numbers(dtype, comm.rank, (comm.size, rows, 3), device)


def reduced(comm: Communicator, x: Any, parts: Any, dtype: torch.dtype) -> dict[str, Any]:
    """Return every reduce operation that the dtype supports, through the three collectives that reduce."""
    found: dict[str, Any] = {}
    for name in REDUCE_OPS:
        if undefined_for(name, dtype) is None:
            op: Any = ("premul_sum", 2) if name == "premul_sum" else name
            works = [comm.all_reduce(x, op), comm.reduce(x, _last(comm), op), comm.reduce_scatter(parts, op)]
            found[name] = results(works)
    return found


def results(works: Sequence[Work[Any]]) -> list[Any]:
    """Return the results of the works' waits."""
    return [work.wait() for work in works]


def describe(found: Any, device: str = "cuda") -> Any:
    """Convert tensors to dtype, shape and bytes, which compare exactly; fail if one is not on ``device``."""
    if isinstance(found, Tensor):
        assert found.device.type == device, f"the result is on {found.device}, should be on {device}"
        return str(found.dtype), tuple(found.shape), as_bytes(found.detach().cpu().contiguous()).tolist()
    if isinstance(found, dict):
        return {name: describe(value, device) for name, value in found.items()}
    return [describe(item, device) for item in found] if isinstance(found, list | tuple) else found
