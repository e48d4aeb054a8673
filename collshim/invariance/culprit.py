"""A line that explains why a run on several ranks computes something different from one rank."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from collshim.invariance.records import Event


@dataclass
class Culprit:
    """The line that explains a difference.

    Attributes:
        sites: the line, followed by the lines that called it, innermost first.
        what: the function or collective.
        why: what is wrong with it.
        fix: how to correct it.
        change: the types before and after it, such as "P→R"; "" if the types do not help.
        parameters: the names of the parameters whose differences it explains.
        also: other lines that are involved.
    """

    sites: tuple[str, ...]
    what: str
    why: str
    fix: str
    change: str = ""
    parameters: list[str] = field(default_factory=list)
    also: list[str] = field(default_factory=list)

    @property
    def site(self) -> str:
        """The line that explains the difference."""
        return self.sites[0]


def cutting(event: Event, in_graph: bool) -> Culprit:
    """Return the culprit for a collective that cuts the gradient of its input."""
    kind = event.name.partition("(")[0]
    reduces = kind.startswith(("all_reduce", "reduce"))
    if not in_graph:
        why = "is in an autograd function whose backward keeps only this rank's gradient: the other ranks' are lost"
        fix = "sum the gradient over the ranks in that backward (all_reduce or reduce_scatter)"
    else:
        why = (
            "writes into a tensor that needs a gradient, and has no backward pass: autograd treats it as the identity"
            if reduces
            else "has no backward pass: the other ranks' gradients of its input are lost"
        )
        fix = f"use a differentiable {kind} (torch.distributed.nn.functional), whose gradients sum over the ranks"
    return Culprit(event.sites, event.name, why, fix, "P→R" if reduces else "V→R")


def changing(event: Event, letter: str, raw: Tensor | None, *, joins_parts: bool) -> Culprit:
    """Return the culprit for an event that turns a right gradient, or a part of the right sum, into a wrong one.

    Args:
        event: the event.
        letter: the gradient's type before the event: "R", "V" or "P".
        raw: the gradient that the backward pass computed.
        joins_parts: whether it is a collective between ranks that hold different parts of the parameter.
    """
    if event.is_random:
        fix = "draw them from a generator whose seed is the same on all ranks that hold the parameter"
        return Culprit(event.sites, event.name, "draws different random numbers on each rank", fix, "R→V")
    if event.value is not None and raw is not None and event.value.dtype.itemsize < raw.dtype.itemsize:
        dtype = str(event.value.dtype).removeprefix("torch.")
        why = f"rounds the gradient to {dtype} before the sum over the ranks, which then depends on their number"
        fix = (
            f"sum it in {str(raw.dtype).removeprefix('torch.')}, or accept these errors: they are as large as {dtype}'s"
        )
        return Culprit(event.sites, event.name, why, fix, letter)
    if event.is_collective and joins_parts:
        why = f"over ranks {list(event.ranks)} combines the gradients of different parts, each held by a different rank"
        fix = "exclude parameters that are split over ranks, or use the group of the ranks that hold the same part"
        return Culprit(event.sites, event.name, why, fix, "V")
    if event.is_collective:
        why = f"over ranks {list(event.ranks)} returns no gradient that the one-rank run has"
        return Culprit(
            event.sites, event.name, why, "check its group, its operation and the order of the ranks", letter
        )
    if letter == "P":
        why = "changes this rank's part of the gradient (P) by an amount that is meant for the sum over the ranks"
        return Culprit(event.sites, event.name, why, "do this after the sum over the ranks", "P")
    why = "changes a correct gradient, and in a different way than on one rank"
    fix = "compute it from all shards, in the same way on every rank"
    return Culprit(event.sites, event.name, why, fix, letter)
