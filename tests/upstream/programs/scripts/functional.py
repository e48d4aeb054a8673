"""Functional collectives: eager, and under torch.compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import _functional_collectives

from tests.upstream.programs.ranks import run_named, weights
from tests.upstream.programs.training import assert_same, own_batch, small_model, train, trained_alone

Program = Callable[[Tensor, int], Any]

functional: Any = _functional_collectives


def reduced(own: Tensor, size: int) -> Any:
    return functional.all_reduce(own * 2, "sum", dist.group.WORLD) + 1


def averaged(own: Tensor, size: int) -> Any:
    return functional.all_reduce(own, "avg", dist.group.WORLD)


def gathered(own: Tensor, size: int) -> Any:
    return functional.all_gather_tensor(own, 0, dist.group.WORLD) * 3


def gathered_columns(own: Tensor, size: int) -> Any:
    return functional.all_gather_tensor(own, 1, dist.group.WORLD)


def scattered(own: Tensor, size: int) -> Any:
    return functional.reduce_scatter_tensor(own.repeat(size, 1), "sum", 0, dist.group.WORLD)


def exchanged(own: Tensor, size: int) -> Any:
    whole = own.repeat(size, 1)
    return functional.all_to_all_single(whole, None, None, dist.group.WORLD)


def sent_by_root(own: Tensor, size: int) -> Any:
    return functional.broadcast(own, 1, dist.group.WORLD)


def several(own: Tensor, size: int) -> Any:
    parts = functional.all_reduce_coalesced([own, own + 1], "sum", dist.group.WORLD)
    more = functional.all_gather_into_tensor_coalesced([own, own + 1], dist.group.WORLD)
    return parts[0] + parts[1] + more[0][:2] + more[1][-2:]


def differentiable(own: Tensor, size: int) -> Any:
    own = own.clone().requires_grad_()
    total = functional.all_gather_tensor_autograd(own, 0, dist.group.WORLD).square().sum()
    (gradient,) = torch.autograd.grad(total, own)
    return gradient


def in_group(own: Tensor, size: int) -> Any:
    return functional.all_reduce(own, "max", list(range(size)))


PROGRAMS: list[Program] = [
    reduced,
    averaged,
    gathered,
    gathered_columns,
    scattered,
    exchanged,
    sent_by_root,
    several,
    differentiable,
]


def eager(rank: int, size: int) -> object:
    """Run each program."""
    own = torch.arange(6.0).reshape(2, 3) + 10 * rank
    return {program.__name__: program(own, size) for program in [*PROGRAMS, in_group]}


def compiled(rank: int, size: int) -> object:
    """Compile each program as one graph, and compare with eager."""
    own = torch.arange(6.0).reshape(2, 3) + 10 * rank
    found: dict[str, object] = {}
    for program in PROGRAMS[:-1]:
        result = torch.compile(program, fullgraph=True, backend="aot_eager")(own, size)
        torch.testing.assert_close(result, program(own, size))
        found[program.__name__] = result
    return found


def inductor(rank: int, size: int) -> object:
    """Compile a program to machine code."""
    own = torch.arange(6.0).reshape(2, 3) + 10 * rank
    found: dict[str, object] = {}
    for program in (reduced, gathered):
        result = torch.compile(program, fullgraph=True)(own, size)
        torch.testing.assert_close(result, program(own, size))
        found[program.__name__] = result
    return found


def plain(own: Tensor, size: int) -> Any:
    """Call the functions that write into tensors, which torch.compile replaces with functional ones."""
    tensor, whole = own.clone(), own.new_empty(2 * size, 3)
    dist.all_reduce(tensor)
    dist.all_gather_into_tensor(whole, own)
    return tensor + whole[:2]


def in_place(rank: int, size: int) -> object:
    own = torch.arange(6.0).reshape(2, 3) + 10 * rank
    result = torch.compile(plain, backend="aot_eager")(own, size)
    torch.testing.assert_close(result, plain(own, size))
    return result


def compiled_ddp(rank: int, size: int) -> object:
    """Compile a model in DistributedDataParallel."""
    model = nn.parallel.DistributedDataParallel(small_model())
    compiled_model = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(compiled_model, optimizer, [own_batch(step, rank, size) for step in range(3)])
    assert_same(model.module, trained_alone(size))
    return weights(model)


USES: dict[str, Callable[[int, int], object]] = {
    "eager": eager,
    "compiled": compiled,
    "inductor": inductor,
    "in-place": in_place,
    "compiled-ddp": compiled_ddp,
}


if __name__ == "__main__":
    run_named(USES)
