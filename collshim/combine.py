"""Every collective where all ranks' tensors can be read: from parts by rank to parts by rank.

``outputs`` has None for a rank that this process does not write for. Each function returns steps, small callables
that may run in any order and at the same time: no step writes what another one reads, so results in place are safe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from torch import Tensor

from collshim.arithmetic import reduce_into
from collshim.call import Call
from collshim.layout import Parts, fill, listed

Step = Callable[[], object]
Inputs = Sequence["Parts | None"]
Outputs = Sequence["Parts | None"]

BLOCK = 1 << 17
"""Elements of one step of a reduction: two operands and the result stay in a core's cache."""


def steps(calls: Sequence[Call], inputs: Inputs, outputs: Outputs) -> list[Step]:
    """What is to be done for calls that agree; the first call speaks for all."""
    return _STEPS[calls[0].op](calls[0], inputs, outputs)


def _all_reduce(call: Call, inputs: Inputs, outputs: Outputs) -> list[Step]:
    targets = [out for out in outputs if isinstance(out, Tensor)]
    return _reductions(call, _tensors(inputs), targets)


def _reductions(call: Call, parts: list[Tensor], targets: list[Tensor]) -> list[Step]:
    """Block by block: a step reads one block of every input and writes that block of every output, in place or not."""
    if not targets or _is_reduced(call, parts, targets):
        return []
    sources = [part.reshape(-1) for part in parts]
    sinks = [target.view(-1) for target in targets]
    length = sinks[0].numel()
    divides = sinks[0].device.type == "cpu" and len(parts) > 1  # a GPU divides the work itself
    block = BLOCK if divides else max(length, 1)
    return [
        partial(_reduce_block, call, sources, sinks, start, min(start + block, length))
        for start in range(0, max(length, 1), block)
    ]


def _is_reduced(call: Call, parts: list[Tensor], targets: list[Tensor]) -> bool:
    """Whether a single rank's part is the result, where it lies."""
    return len(parts) == len(targets) == 1 and call.factor is None and _same(targets[0], parts[0])


def _reduce_block(call: Call, sources: list[Tensor], sinks: list[Tensor], start: int, stop: int) -> None:
    first = sinks[0][start:stop]
    reduce_into(first, [source[start:stop] for source in sources], call.reduce_op or "sum", call.factor)
    for sink in sinks[1:]:
        sink[start:stop].copy_(first)


def _reduce_scatter(call: Call, inputs: Inputs, outputs: Outputs) -> list[Step]:
    found: list[Step] = []
    for rank, out in enumerate(outputs):
        if isinstance(out, Tensor):
            found += _reductions(call, [_part(parts, rank) for parts in inputs], [out])
    return found


def _broadcast(call: Call, inputs: Inputs, outputs: Outputs) -> list[Step]:
    source = inputs[_root(call)]
    return [
        partial(out.copy_, source)
        for out in outputs
        if isinstance(out, Tensor) and isinstance(source, Tensor) and not _same(out, source)
    ]


def _all_gather(call: Call, inputs: Inputs, outputs: Outputs) -> list[Step]:
    parts = _tensors(inputs)
    return [partial(fill, out, parts) for out in outputs if out is not None]


def _scatter(call: Call, inputs: Inputs, outputs: Outputs) -> list[Step]:
    source = inputs[_root(call)]
    return [partial(out.copy_, _part(source, rank)) for rank, out in enumerate(outputs) if isinstance(out, Tensor)]


def _all_to_all(call: Call, inputs: Inputs, outputs: Outputs) -> list[Step]:
    sent = [listed(parts) if parts is not None else [] for parts in inputs]
    return [partial(fill, out, [parts[rank] for parts in sent]) for rank, out in enumerate(outputs) if out is not None]


def _barrier(call: Call, inputs: Inputs, outputs: Outputs) -> list[Step]:
    return []


def _tensors(inputs: Inputs) -> list[Tensor]:
    return [parts for parts in inputs if isinstance(parts, Tensor)]


def _part(parts: Parts | None, rank: int) -> Tensor:
    if parts is None:
        raise AssertionError("a rank that sends parts has given none")  # the check between ranks excludes it
    return parts[rank]


def _root(call: Call) -> int:
    return 0 if call.root is None else call.root


def _same(one: Tensor, other: Tensor) -> bool:
    return one.data_ptr() == other.data_ptr() and one.stride() == other.stride()


_STEPS: dict[str, Callable[[Call, Inputs, Outputs], list[Step]]] = {
    "all_reduce": _all_reduce,
    "reduce": _all_reduce,
    "reduce_scatter": _reduce_scatter,
    "broadcast": _broadcast,
    "all_gather": _all_gather,
    "gather": _all_gather,
    "scatter": _scatter,
    "all_to_all": _all_to_all,
    "barrier": _barrier,
}
