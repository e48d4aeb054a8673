"""The assertion for tests that a step computes the same on any number of ranks."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from collshim import world as worlds
from collshim.invariance.check import SAME, check
from collshim.invariance.program import NO_BATCH, Program, Switches, packed


def assert_rank_invariant(
    step: Callable[..., Any],
    batch: Any = NO_BATCH,
    ranks: Sequence[int] = (1, 2, 4),
    *,
    mesh: Mapping[str, int] | None = None,
    seed: int = 0,
    keep_dropout: bool = False,
    kind: str = "auto",
    timeout: float = 120.0,
) -> None:
    """Assert that a training step computes the same gradients on one rank and on several.

    Examples:
        >>> import torch, torch.distributed as dist
        >>> def step(batch):
        ...     model = torch.nn.Linear(3, 1)
        ...     mine = batch.chunk(dist.get_world_size())[dist.get_rank()]
        ...     loss = model(mine).square().mean()
        ...     loss.backward()
        ...     for parameter in model.parameters():
        ...         dist.all_reduce(parameter.grad, dist.ReduceOp.AVG)
        ...     return loss, model
        >>> assert_rank_invariant(step, torch.ones(4, 3), ranks=(1, 2), kind="threads")

    Args:
        step: runs on every rank, with the default group of torch.distributed: it takes the rank's part of ``batch``,
            runs the backward pass, and returns the loss and the model, or gradients in a dict by name.
        batch: the global batch, the same for all ranks; if it is left out, the step is called without an argument.
        ranks: the numbers of ranks; one rank is always run, twice.
        mesh: the sizes of the axes of a mesh, by name; their product is one of the numbers of ranks.
        seed: the seed of torch, NumPy and Python on every rank.
        keep_dropout: whether dropout is left on.
        kind: "threads", "processes", or "auto" for threads and, if these do not compute the same, processes.
        timeout: seconds that one run may take.

    Raises:
        AssertionError: the step computes different gradients on several ranks, and the text is the report of
            ``collshim invariance``; or the step does not train, or is not deterministic on one rank. If the ranks of a
            world call this, it is raised on all of them.
        RankError: the step fails on one rank.
        ArgumentError: the step's batch cannot be pickled.
    """
    __tracebackhide__ = True
    world, switches = worlds.peek(), Switches(seed, keep_dropout, kind, 1, timeout)
    if world is None or world.size == 1:
        text = _report(step, batch, ranks, mesh, switches)
    else:
        text = _report(step, batch, ranks, mesh, switches) if world.rank == 0 else ""
        text = world.communicator.broadcast_object(text, 0).wait(2 * timeout * (len(ranks) + 2))
    if text:
        raise AssertionError(text)


def _report(
    step: Callable[..., Any], batch: Any, ranks: Sequence[int], mesh: Mapping[str, int] | None, switches: Switches
) -> str:
    """Return the report, or "" if the step is invariant."""
    name = getattr(step, "__qualname__", type(step).__name__)
    program = Program(name, step, batch=None if batch is NO_BATCH else packed(batch))
    report = check(program, ranks, mesh, switches)
    if report.code == SAME:
        return ""
    if importlib.util.find_spec("rich") is None:
        return report.summary()
    from collshim.invariance import table

    return table.as_text(report)
