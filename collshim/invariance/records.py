"""The records of a run on each of its ranks; all of them can be pickled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

FORWARD, BACKWARD, AFTER = "forward", "backward", "after"
"""The phases of a step: before the first backward pass, inside a backward pass, and after one."""


GRADIENT = "gradient"
"""The name of the event in which a tensor becomes a parameter's gradient."""


class Place(NamedTuple):
    """The position of a rank's shard in a DTensor.

    Attributes:
        offsets: the index of its first element in each dimension.
        shape: the shape of the whole tensor.
    """

    offsets: tuple[int, ...]
    shape: tuple[int, ...]


@dataclass
class Parameter:
    """A parameter, or a gradient that the step returned by name, on one rank.

    Attributes:
        names: its names in the model; a tied parameter has several.
        value: the value at the first forward pass; None if only a gradient is known.
        gradient: the gradient at the optimizer's first step, or at the end if there is no step; None if there is none.
        raw: the gradient that this rank's backward passes computed, before any reduction; None if not known.
        after: the value at the end, if an optimizer changed it.
        place: the position of a DTensor's shard; None for other tensors.
        is_compared: whether it belongs to the result of the step.
        is_stepped: whether an optimizer stepped it, and so used its gradient.
        hooks: the lines that registered hooks on its gradient.
        arrived: the number of events before its gradient was last computed; 0 if not known.
    """

    names: tuple[str, ...]
    value: Tensor | None = None
    gradient: Tensor | None = None
    raw: Tensor | None = None
    after: Tensor | None = None
    place: Place | None = None
    is_compared: bool = True
    is_stepped: bool = False
    hooks: list[tuple[str, ...]] = field(default_factory=list)
    arrived: int = 0

    @property
    def name(self) -> str:
        """Its first name."""
        return self.names[0]


@dataclass
class Event:
    """An operation of torch that the program called, or a collective.

    Attributes:
        sites: the line of the program, as ``path:line``, followed by the lines that called it, innermost first.
        name: the name of the function.
        phase: see the constants of this module.
        turn: how often this line had called this function in this phase before.
        inputs: the numbers of the events that made its inputs.
        parameters: the numbers of the parameters that it uses, or whose gradients it uses or changes.
        written: the numbers of the parameters whose gradients hold the result.
        value: the result; None if not kept.
        gradient: the gradient of the result; None if not kept.
        arrived: the number of events before the gradient was known.
        ranks: the global ranks of a collective's group; empty for other operations.
        before: a collective's input; for an operation that writes into a DTensor, the DTensor's earlier value.
        needs_grad: whether the result needs a gradient or, of a collective, an input.
        in_graph: whether autograd was recording.
        is_random: whether it draws random numbers.
        is_in_place: whether the result has the memory of an input.
        is_torchs: whether torch's own parallel code calls it, such as DistributedDataParallel.
    """

    sites: tuple[str, ...]
    name: str
    phase: str
    turn: int
    inputs: list[int] = field(default_factory=list)
    parameters: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    value: Tensor | None = None
    gradient: Tensor | None = None
    arrived: int = -1
    ranks: tuple[int, ...] = ()
    before: Tensor | None = None
    needs_grad: bool = False
    in_graph: bool = False
    is_random: bool = False
    is_in_place: bool = False
    is_torchs: bool = False

    @property
    def key(self) -> tuple[Any, ...]:
        """The key that identifies the same event in another run."""
        return self.phase, self.sites, self.name, self.turn

    @property
    def is_collective(self) -> bool:
        """Whether it is a collective or a point-to-point message."""
        return bool(self.ranks)


class Draw(NamedTuple):
    """A dropout that was switched off.

    Attributes:
        sites, turn: see ``Event``.
        of: a digest of its input.
        state: a digest of the generator's state.
    """

    sites: tuple[str, ...]
    turn: int
    of: str
    state: str


@dataclass
class RankRecord:
    """The record of one rank.

    Attributes:
        losses: the losses that the step returned, or those of its backward passes.
        parameters: the parameters, in the model's order.
        events: the operations, in order; empty if the run was not traced.
        draws: the dropouts that were switched off.
        backward: the line of the last backward pass, followed by the lines that called it; empty if there was none.
        ends: the numbers of the events whose results the backward passes started from.
        seeds: the arguments of ``torch.manual_seed``, by line.
        steps: the number of steps that the optimizer made.
        coarsest: the least precise dtype among the results of operations; None if not known.
        clipped: the total norms that ``clip_grad_norm_`` returned, by line.
        is_cut: whether tensors were left out of ``events`` because they would take too much memory.
    """

    losses: list[float] = field(default_factory=list)
    parameters: list[Parameter] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    draws: list[Draw] = field(default_factory=list)
    backward: tuple[str, ...] = ()
    ends: list[int] = field(default_factory=list)
    seeds: list[tuple[tuple[str, ...], int]] = field(default_factory=list)
    steps: int = 0
    coarsest: torch.dtype | None = None
    clipped: list[tuple[tuple[str, ...], float]] = field(default_factory=list)
    is_cut: bool = False
