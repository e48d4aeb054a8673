"""A line that explains why a run on several ranks computes something else than one rank."""

from __future__ import annotations

from dataclasses import dataclass, field

from collshim.invariance.records import Event


@dataclass
class Culprit:
    """The line that explains a difference.

    Attributes:
        sites: the line, and those that called it, outwards.
        what: the function or collective; ``why``: what it does wrong; ``fix``: what would be right.
        change: the types before and after it, such as "P→R"; "" if they say nothing.
        parameters: the names of those that it explains.
        also: other lines that take part.
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
        """The line itself."""
        return self.sites[0]


def cutting(event: Event, in_graph: bool) -> Culprit:
    """Return the culprit for a collective that cuts the gradient of its input."""
    kind = event.name.partition("(")[0]
    reduces = kind.startswith(("all_reduce", "reduce"))
    if not in_graph:
        why = (
            "is in a function of autograd whose backward keeps this rank's gradient alone: those of the others are lost"
        )
        fix = "sum the gradient over the ranks in that backward (all_reduce or reduce_scatter)"
    else:
        why = (
            "writes into a tensor that needs a gradient, and has no backward pass: autograd takes it for the identity"
            if reduces
            else "has no backward pass: the other ranks' gradients of its input are lost"
        )
        fix = f"use a differentiable {kind} (torch.distributed.nn.functional), whose gradients sum over the ranks"
    return Culprit(event.sites, event.name, why, fix, "P→R" if reduces else "V→R")
