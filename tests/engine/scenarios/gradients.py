"""Programs of a world whose losses are summed, to compare their gradients with finite differences.

A program takes one rank's communicator and input, and returns the tensors of its loss, or the token if the rank gets
none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from collshim import Communicator, Work
from tests.engine.worlds import attempt, world

Program = Callable[[Communicator, Tensor], list[Tensor]]
STEP = 1e-6


class Case(NamedTuple):
    """A program, and the shape of each rank's input."""

    program: Program
    shapes: tuple[tuple[int, ...], ...]


def given(shape: tuple[int, ...], rank: int) -> Tensor:
    """Return numbers without ties or zeros that differ by rank."""
    count = torch.Size(shape).numel()
    mixed = (torch.arange(count, dtype=torch.float64) * 7 + rank * 5) % 11
    return (mixed * 0.3 + 0.4 + 0.05 * rank).reshape(shape)


def weights(like: Tensor, rank: int, salt: int = 0) -> Tensor:
    count = torch.arange(like.numel(), dtype=torch.float64)
    return ((count * 3 + rank * 2 + salt) % 7 + 0.5).reshape(like.shape)


def loss_of(results: Sequence[Tensor], rank: int) -> Tensor:
    """Return a loss that differs by rank and is nonlinear in every result."""
    total = torch.zeros((), dtype=torch.float64)
    for salt, result in enumerate(results):
        total = total + (weights(result, rank, salt) * result).sum() + 0.5 * (result * result).sum()
    return total


def world_loss(program: Program, comm: Communicator, mine: Tensor) -> float:
    """Return the sum of all ranks' losses; a rank that only joins adds nothing."""
    with torch.no_grad():
        found = [result for result in program(comm, mine) if result is not None]
        return float(comm.all_reduce(loss_of(found, comm.rank)).wait())


def differences(value: Callable[[Tensor], float], comm: Communicator, shapes: Sequence[tuple[int, ...]]) -> Tensor:
    """Differentiate a function of the world by this rank's input, numerically; all ranks step through all inputs."""
    mine = given(shapes[comm.rank], comm.rank)
    found = torch.zeros(mine.numel(), dtype=torch.float64)
    for rank, shape in enumerate(shapes):
        for index in range(torch.Size(shape).numel()):
            sides = [value(_moved(mine, index, side) if rank == comm.rank else mine) for side in (STEP, -STEP)]
            if rank == comm.rank:
                found[index] = (sides[0] - sides[1]) / (2 * STEP)
    return found.reshape(mine.shape)


def _moved(tensor: Tensor, index: int, by: float) -> Tensor:
    found = tensor.clone()
    found.view(-1)[index] += by
    return found


def first_order(case: Case, needs: Sequence[bool]) -> Any:
    """Return this rank's gradient and the finite differences, both of the sum of all ranks' losses."""
    comm = world()
    mine = given(case.shapes[comm.rank], comm.rank).requires_grad_(needs[comm.rank])
    loss = loss_of(case.program(comm, mine), comm.rank)
    if loss.requires_grad:  # else no gradient is needed in this rank's calls
        loss.backward()
    wanted = differences(lambda x: world_loss(case.program, comm, x), comm, case.shapes)
    return mine.grad, wanted


def second_order(case: Case) -> Any:
    """Return the same for a function of the gradients themselves."""
    comm = world()

    def of_gradients(mine: Tensor, create_graph: bool) -> Tensor:
        loss = loss_of(case.program(comm, mine), comm.rank)
        (gradient,) = torch.autograd.grad(loss, mine, create_graph=create_graph)
        return (weights(gradient, comm.rank, 3) * gradient).sum()

    mine = given(case.shapes[comm.rank], comm.rank).requires_grad_()
    of_gradients(mine, True).backward()

    def value(x: Tensor) -> float:
        return float(comm.all_reduce(of_gradients(x.clone().requires_grad_(), False).detach()).wait())

    return mine.grad, differences(value, comm, case.shapes)


def _result(work: Work[Any]) -> list[Tensor]:
    """Return the work's tensors; its token on a rank that gets none, so that this rank joins the backward."""
    got = work.wait()
    if got is None:
        return [] if work.token is None else [work.token]
    return list(got) if isinstance(got, list) else [got]


def _reduction(op: Any) -> Program:
    return lambda c, x: _result(c.all_reduce(x, op))


def _rooted_reduction(op: Any) -> Program:
    return lambda c, x: _result(c.reduce(x, 1, op))


def _scattered_reduction(op: Any) -> Program:
    return lambda c, x: _result(c.reduce_scatter(x.unflatten(0, (c.size, -1)), op))


def _ragged_reduction(op: Any) -> Program:
    """Reduce and scatter; the r-th part has r + 1 elements."""
    return lambda c, x: _result(c.reduce_scatter(list(x.split([rank + 1 for rank in range(c.size)])), op))


def _squared(program: Program) -> Program:
    """Make input and output nonlinear, so that gradients flow through more than the collective."""
    return lambda c, x: [torch.sin(result) for result in program(c, x * x)]


def _split(x: Tensor, comm: Communicator) -> list[Tensor]:
    """Split into unequal parts, one of them empty for some ranks."""
    lengths = [(comm.rank + peer) % comm.size for peer in range(comm.size)]
    return list(x.split(lengths))


def _on_a_subgroup(comm: Communicator, x: Tensor) -> list[Tensor]:
    """Ranks 2 and 0 reduce; rank 1 is outside."""
    group = comm.subgroup([2, 0])
    return [x * x] if group is None else _result(group.all_reduce(x, "prod"))


def _gathered_on_a_subgroup(comm: Communicator, x: Tensor) -> list[Tensor]:
    group = comm.subgroup([2, 1, 0])
    assert group is not None
    return _result(group.gather(x, 0))


def _ring(comm: Communicator, x: Tensor) -> list[Tensor]:
    arriving = comm.recv((comm.rank - 1) % comm.size, like=x.detach())
    leaving = comm.send(x, (comm.rank + 1) % comm.size)
    return [*_result(arriving), *_result(leaving)]


def _from_anybody(comm: Communicator, x: Tensor) -> list[Tensor]:
    """Ranks 1 and 2 send to rank 0, whose loss does not depend on the order of arrival."""
    if comm.rank:
        return _result(comm.send(x, 0))
    works = [comm.recv(None, like=x.detach()) for _ in range(2)]
    return [x, torch.stack([work.wait() for work in works]).sum(0)]


def _two_steps(comm: Communicator, x: Tensor) -> list[Tensor]:
    return _result(comm.all_to_all(torch.tanh(comm.all_gather(x).wait())))


def _numbers_of(comm: Communicator, x: Tensor) -> list[Tensor]:
    """Return a result of which the loss uses only one part."""
    return [comm.all_gather_ragged(x).wait()[1]]


_ALIKE = ((2, 2),) * 3
_UNLIKE = ((1,), (0,), (3,))
_PARTS = ((6, 2),) * 3
_SUMS = ((6,),) * 3

CASES: dict[str, Case] = {
    **{f"all_reduce {op}": Case(_reduction(op), _ALIKE) for op in ("sum", "avg", "prod", "min", "max")},
    "all_reduce premul_sum": Case(_reduction(("premul_sum", -1.5)), _ALIKE),
    **{f"reduce {op}": Case(_rooted_reduction(op), _ALIKE) for op in ("sum", "avg", "prod", "min", "max")},
    "reduce premul_sum": Case(_rooted_reduction(("premul_sum", -1.5)), _ALIKE),
    **{f"reduce_scatter {op}": Case(_scattered_reduction(op), _PARTS) for op in ("sum", "avg", "prod", "min", "max")},
    "reduce_scatter premul_sum": Case(_scattered_reduction(("premul_sum", -1.5)), _PARTS),
    **{
        f"reduce_scatter {op}, ragged": Case(_ragged_reduction(op), _SUMS)
        for op in ("sum", "avg", "prod", "min", "max")
    },
    "broadcast": Case(lambda c, x: _result(c.broadcast(x, 1)), _ALIKE),
    "all_gather": Case(lambda c, x: _result(c.all_gather(x)), _ALIKE),
    "all_gather of 0-d": Case(lambda c, x: _result(c.all_gather(x)), ((),) * 3),
    "all_gather_ragged": Case(lambda c, x: _result(c.all_gather_ragged(x)), _UNLIKE),
    "all_gather_ragged, one part used": Case(_numbers_of, _UNLIKE),
    "gather": Case(lambda c, x: _result(c.gather(x, 1)), _ALIKE),
    "gather_ragged": Case(lambda c, x: _result(c.gather_ragged(x, 1)), _UNLIKE),
    "scatter, stacked": Case(
        lambda c, x: _result(c.scatter(x.unflatten(0, (3, 2)) if c.rank == 1 else None, 1, like=x[:2])), _PARTS
    ),
    "scatter, list": Case(lambda c, x: _result(c.scatter(list(x.split(2)) if c.rank == 1 else None, 1)), _PARTS),
    "scatter, ragged": Case(
        lambda c, x: _result(c.scatter(list(x.split([1, 2, 3])) if c.rank == 1 else None, 1)), _PARTS
    ),
    "all_to_all, stacked": Case(lambda c, x: _result(c.all_to_all(x.unflatten(0, (3, 2)))), _PARTS),
    "all_to_all, list": Case(lambda c, x: _result(c.all_to_all(list(x.split(2)))), _PARTS),
    "all_to_all, ragged": Case(lambda c, x: _result(c.all_to_all(_split(x, c))), ((3, 2),) * 3),
    "send and recv": Case(_ring, _ALIKE),
    "send, and recv from anybody": Case(_from_anybody, _ALIKE),
    "a subgroup": Case(_on_a_subgroup, _ALIKE),
    "a subgroup in another order": Case(_gathered_on_a_subgroup, _ALIKE),
    "two steps": Case(_two_steps, _ALIKE),
    "bent before and after": Case(_squared(_reduction("sum")), _ALIKE),
}

LINEAR = (
    "all_reduce sum",
    "all_reduce avg",
    "all_reduce premul_sum",
    "all_reduce prod",
    "reduce_scatter sum",
    "reduce_scatter avg, ragged",
    "all_gather",
    "all_gather_ragged",
    "all_to_all, stacked",
    "all_to_all, ragged",
    "bent before and after",
)
"""The gradients of these are differentiated once more."""

CHANGED = [
    name for name in CASES if not any(word in name for word in ("prod", "min", "max", "subgroup", "steps", "bent"))
]
"""Linear cases, so that the backward needs neither input nor output."""


def changed_in_place(name: str) -> Any:
    """Return this rank's gradient, and the same after inputs and results were overwritten before the backward."""
    comm, gradients = world(), list[Any]()
    for changes in (False, True):
        leaf = given(CASES[name].shapes[comm.rank], comm.rank).requires_grad_()
        mine = leaf * 1
        results = CASES[name].program(comm, mine)
        for tensor in [mine, *results] if changes else []:
            tensor += 1
        loss = torch.stack([(weights(result, comm.rank) * result).sum() for result in results]).sum()
        loss.backward()
        gradients.append(leaf.grad)
    return gradients


def _to_everybody(comm: Communicator, x: Tensor) -> list[Tensor]:
    """Rank 1 sends to the others."""
    if comm.rank != 1:
        return _result(comm.recv(1, like=x.detach()))
    works = [comm.send(x, rank) for rank in (0, 2)]
    return [token for work in works for token in _result(work)]


TWICE: dict[str, Program] = {
    "broadcast": CASES["broadcast"].program,
    "scatter, stacked": CASES["scatter, stacked"].program,
    "scatter, list": lambda c, x: _result(c.scatter(list(x.split(2)) if c.rank == 1 else None, 1, like=x[:2])),
    "send": _to_everybody,
}
"""Cases in which only rank 1 has a gradient, of all ranks' losses, which must not be differentiated."""


def twice(name: str) -> Any:
    """Rank 1 differentiates its gradient; then all ranks make a valid call."""
    comm = world()
    mine = given((6, 2), comm.rank).requires_grad_()
    loss = loss_of(TWICE[name](comm, mine), comm.rank)
    refused = None
    if comm.rank == 1:
        (gradient,) = torch.autograd.grad(loss, mine, create_graph=True)
        refused = attempt(torch.autograd.grad, (gradient * gradient).sum(), mine)
    else:
        loss.backward(create_graph=True)
    return refused, int(comm.all_reduce(torch.tensor(1)).wait())


def linear(name: str) -> Any:
    """Return whether rank 1's gradient depends on anything, and whether it is right."""
    comm = world()
    mine = given((6, 2), comm.rank).requires_grad_()
    results = TWICE[name](comm, mine)
    loss = torch.stack([result.sum() for result in results]).sum()
    if comm.rank != 1:
        loss.backward(create_graph=True)
        return None
    (gradient,) = torch.autograd.grad(loss, mine, create_graph=True)
    counts = {"broadcast": 3.0, "send": 2.0}
    return gradient.requires_grad, bool((gradient == counts.get(name, 1.0)).all())


def by_name(name: str, needs: Sequence[bool]) -> Any:
    """Call ``first_order`` for ranks that are processes."""
    found, wanted = first_order(CASES[name], needs)
    return None if found is None else found.tolist(), wanted.tolist()
