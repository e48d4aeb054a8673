"""Compute every collective in one process that can read all ranks' tensors: from inputs by rank to outputs by rank.

Results in place are safe: nothing is written before everything that overlaps it has been read. The callers use
``aliasing.without_overlap``, and each function here states what it relies on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from collshim.arrays.arithmetic import Reducer, reducer, scaling_reducer
from collshim.calls import collective
from collshim.calls.call import Call
from collshim.calls.collective import Collective
from collshim.layout import Parts, fill

Inputs = Sequence[Any]
"""``Parts`` for each rank, or None for a rank without an input."""

Outputs = list[Any]
"""``Parts`` for each rank, or None to allocate the memory; the result then replaces None."""

Computation = Callable[[Inputs, Outputs, Sequence[int]], None]
"""Writes the results of some ranks, given the inputs and outputs of all ranks."""

Share = Callable[[], object]

BLOCK = 1 << 17
"""The number of elements in one share of a reduction, so that two operands and the result fit in a core's cache."""

_SMALL = 1 << 16
"""Up to this many bytes, all parts are reduced together, then copied out: fewer operations, and copies from cache."""


def reducer_of(call: Call, dtype: torch.dtype | None = None) -> Reducer:
    """Return the reducer of a call; ``dtype`` is that of the other ranks' calls if this rank's call has none."""
    kind = call.dtype or dtype or torch.float32
    return reducer(kind, call.reduce_op or "sum") if call.factor is None else scaling_reducer(kind, call.factor)


def computation(call: Call, dtype: torch.dtype | None = None) -> Computation:
    """Return the computation of ``call``'s results; one rank's call stands for all, since they agree."""
    if call.collective.reduces:
        function: Callable[..., None] = _reduce_scatter if call.collective is collective.REDUCE_SCATTER else _reduce
        return partial(function, reducer_of(call, dtype))
    return partial(_MOVEMENTS[call.collective], call.root or 0)


def shares(call: Call, compute: Computation, inputs: Inputs, outputs: Outputs, ranks: Sequence[int]) -> list[Share]:
    """Cut a computation into shares that can run in any order and concurrently; the outputs are allocated.

    No share writes memory that another one reads.
    """
    if call.collective is collective.REDUCE_SCATTER:
        return [share for rank in ranks for share in _blocks(call, [parts[rank] for parts in inputs], [outputs[rank]])]
    if call.collective.reduces:
        return _blocks(call, inputs, [outputs[rank] for rank in ranks])
    return [partial(compute, inputs, outputs, (rank,)) for rank in ranks]


def _blocks(call: Call, parts: Sequence[Tensor], outputs: Sequence[Tensor]) -> list[Share]:
    """Make shares that each read one block of every part and write that block of every output, in place or not."""
    compute = computation(call._replace(collective=collective.ALL_REDUCE), parts[0].dtype)
    sources = [part.reshape(-1) for part in parts]
    sinks = [out.view(-1) for out in outputs]
    return [
        partial(
            compute,
            [source[start : start + BLOCK] for source in sources],
            [sink[start : start + BLOCK] for sink in sinks],
            range(len(sinks)),
        )
        for start in range(0, sources[0].numel(), BLOCK)
    ]


def _reduce(reduces: Reducer, inputs: Inputs, outputs: Outputs, ranks: Sequence[int]) -> None:
    """Compute all_reduce or reduce: the first of ``ranks`` receives the reduction, the others a copy of it."""
    if len({part.shape for part in inputs}) > 1:
        _reduce_unlike(reduces, inputs, outputs, ranks)
        return
    total = None
    for rank in ranks:
        out = outputs[rank]
        if total is None:
            outputs[rank] = total = reduces(inputs, out)
        else:
            outputs[rank] = total.clone() if out is None else out.copy_(total)


def _reduce_unlike(reduces: Reducer, inputs: Inputs, outputs: Outputs, ranks: Sequence[int]) -> None:
    """Do the same for tensors whose shapes differ by dimensions of length 1; each rank's result has its own shape."""
    total = reduces([part.reshape(-1) for part in inputs], None)
    for rank in ranks:
        shape = inputs[rank].shape
        outputs[rank] = _copy(total.view(shape), outputs[rank])


def _reduce_scatter(reduces: Reducer, inputs: Inputs, outputs: Outputs, ranks: Sequence[int]) -> None:
    if all(type(parts) is Tensor and parts.nbytes <= _SMALL for parts in inputs):
        total = reduces(inputs, None)
        for rank in ranks:
            outputs[rank] = _copy(total[rank], outputs[rank])
        return
    for rank in ranks:
        outputs[rank] = reduces([parts[rank] for parts in inputs], outputs[rank])


def _broadcast(root: int, inputs: Inputs, outputs: Outputs, ranks: Sequence[int]) -> None:
    source = inputs[root]
    for rank in ranks:
        out = outputs[rank]
        shape = source.shape if out is None else out.shape  # these can differ by dimensions of length 1
        outputs[rank] = _copy(source if shape == source.shape else source.reshape(shape), out)


def _all_gather(root: int, inputs: Inputs, outputs: Outputs, ranks: Sequence[int]) -> None:
    """Compute all_gather or gather."""
    for rank in ranks:
        outputs[rank] = _join(inputs, outputs[rank])


def _scatter(root: int, inputs: Inputs, outputs: Outputs, ranks: Sequence[int]) -> None:
    source = inputs[root]
    for rank in ranks:
        outputs[rank] = _copy(source[rank], outputs[rank])


def _all_to_all(root: int, inputs: Inputs, outputs: Outputs, ranks: Sequence[int]) -> None:
    for rank in ranks:
        outputs[rank] = _join([parts[rank] for parts in inputs], outputs[rank])


def _barrier(root: int, inputs: Inputs, outputs: Outputs, ranks: Sequence[int]) -> None:
    """Do nothing: no data moves."""


def _copy(source: Tensor, out: Tensor | None) -> Tensor:
    """Copy one tensor to ``out``, or to memory that no other rank uses."""
    if out is None:
        return source.clone()
    return out if out is source else out.copy_(source)


def _join(parts: Sequence[Tensor], out: Parts | None) -> Parts:
    """Write every rank's part, in rank order, to ``out`` or to new memory."""
    if out is None:
        return torch.stack(list(parts))
    fill(out, parts)
    return out


_MOVEMENTS: dict[Collective, Callable[[int, Inputs, Outputs, Sequence[int]], None]] = {
    collective.BROADCAST: _broadcast,
    collective.ALL_GATHER: _all_gather,
    collective.GATHER: _all_gather,
    collective.SCATTER: _scatter,
    collective.ALL_TO_ALL: _all_to_all,
    collective.BARRIER: _barrier,
}
