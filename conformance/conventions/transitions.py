"""The gradient's rule of every function of the five adapters as a transition, and the tables of it on a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from collshim.conformance import transitions
from collshim.conformance.bindings import bindings
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.messages import Messages
from collshim.conformance.bindings.spelling import Spelling
from collshim.conformance.cases import OBJECTS, RINGS
from collshim.conformance.reporting.markdown import table
from collshim.conformance.transitions import Transition
from collshim.conformance.values import REDUCTIONS
from collshim.frameworks import FRAMEWORKS

BITWISE = ("band", "bor", "bxor")
FACTOR = "premul_sum"


@dataclass(frozen=True)
class Ruled:
    """A function and its rule.

    Attributes:
        framework: the framework's name.
        path: the function's path.
        collective: the suite's name of the collective.
        reduce_op: the reduction; "sum" if there is none.
        transition: the rule; None if the function passes no gradient.
        name: the binding's name; "" for a function that no binding can differentiate.
    """

    framework: str
    path: str
    collective: str
    reduce_op: str
    transition: Transition | None
    name: str = ""


_UNDRAWN = ("oneflow.comm.gather", "oneflow.comm.gather[everywhere]")
"""Spellings with gradients that the suite draws no cases for: ranks without a list could not join the backward."""

_TORCH, _FUNCTIONS = "torch.distributed.nn.functional.", "mindspore.communication.comm_func."
_PRIMITIVES, _MEGENGINE = "mindspore.ops.", "megengine.functional.distributed."
_BESIDE: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (_TORCH + "all_reduce", "all_reduce", (FACTOR,)),
    (_TORCH + "reduce", "reduce", (FACTOR,)),
    (_TORCH + "reduce_scatter", "reduce_scatter", (FACTOR,)),
    (_TORCH + "_all_gather_base", "all_gather", ("sum",)),
    (_FUNCTIONS + "reduce", "reduce", ("avg",)),
    (_FUNCTIONS + "reduce_scatter_tensor", "reduce_scatter", ("avg",)),
    (_PRIMITIVES + "AllReduce", "all_reduce", ("avg",)),
    (_PRIMITIVES + "Reduce", "reduce", ("avg",)),
    (_PRIMITIVES + "ReduceScatter", "reduce_scatter", ("avg",)),
    (_PRIMITIVES + "ReduceScatterV", "reduce_scatter", ("sum", "avg", "min", "max", "prod")),
    (_PRIMITIVES + "AllGatherV", "all_gather", ("sum",)),
    (_PRIMITIVES + "AlltoAllV", "all_to_all", ("sum",)),
    (_PRIMITIVES + "AlltoAllVC", "all_to_all", ("sum",)),
    (_PRIMITIVES + "Send", "ring", ("sum",)),
    (_PRIMITIVES + "Receive", "ring", ("sum",)),
    (_PRIMITIVES + "NeighborExchange", "ring", ("sum",)),
    (_PRIMITIVES + "NeighborExchangeV2", "ring", ("sum",)),
    (_MEGENGINE + "collective_comm", "all_reduce", ("sum",)),
    (_MEGENGINE + "remote_send", "ring", ("sum",)),
    (_MEGENGINE + "remote_recv", "ring", ("sum",)),
)
"""Functions with gradients that no binding differentiates, or not with these reductions: path, collective, ops."""

_SILENT = (_PRIMITIVES + "BatchISendIRecv",)
"""Messages without gradients that have no binding."""


def ruled() -> list[Ruled]:
    """Return the rule of every function that has one, and None for those that pass no gradient."""
    spelled = [
        Ruled(one.framework.name, path, one.collective, op, transition_of(one, op), one.name)
        for one in bindings()
        if one.collective not in (*OBJECTS, "barrier") and "async" not in one.form
        for path in (one.halves if isinstance(one, Messages) else (one.path,))
        for op in one.admits.reduce_ops
        if op not in BITWISE
    ]
    beside = [
        Ruled(path.partition(".")[0], path, collective, op, transitions.of(collective, op))
        for path, collective, ops in _BESIDE
        for op in ops
    ]
    silent = [Ruled(path.partition(".")[0], path, "ring", "sum", None) for path in _SILENT]
    known = {(one.path, one.reduce_op) for one in beside}
    return [one for one in spelled if (one.path, one.reduce_op) not in known] + beside + silent


def transition_of(binding: Binding, reduce_op: str) -> Transition | None:
    """Return the rule of a spelling, or None if its results are not in autograd's graph."""
    if not isinstance(binding, Spelling):
        return None
    if not (binding.admits.gradient or binding.result == "returned" or binding.name in _UNDRAWN):
        return None
    is_everywhere = binding.collective == "gather" and binding.holders == "all"
    return transitions.of("all_gather" if is_everywhere else binding.collective, reduce_op, binding.rule)


def tables() -> str:
    """Return the table of the rules and that of the functions."""
    every = sorted(ruled(), key=_place)
    kinds = dict.fromkeys((one.collective, one.reduce_op) for one in every)
    rules = [[_label(*kind), *(_cell(_of(framework, every), kind) for framework in FRAMEWORKS)] for kind in kinds]
    functions = [[entry.title, *_names(_of(entry.name, every))] for entry in FRAMEWORKS.values()]
    titles = ["", *(entry.title for entry in FRAMEWORKS.values())]
    return f"{table(titles, rules)}\n{table(['', 'these rules', 'no gradient'], functions)}"


_ORDER = (
    "all_reduce",
    "reduce",
    "reduce_scatter",
    "broadcast",
    "all_gather",
    "gather",
    "scatter",
    "all_to_all",
    "ring",
)
_OPS = ("sum", "avg", FACTOR, "min", "max", "prod")


def _place(one: Ruled) -> tuple[int, int]:
    return _ORDER.index(one.collective), _OPS.index(one.reduce_op)


def _of(framework: str, every: Sequence[Ruled]) -> list[Ruled]:
    return [one for one in every if one.framework == framework]


def _label(collective: str, reduce_op: str) -> str:
    if collective in RINGS:
        return "send, recv"
    if collective not in REDUCTIONS:
        return collective
    return f'{collective} `("premul_sum", f)`' if reduce_op == FACTOR else f"{collective} `{reduce_op}`"


def _cell(every: Sequence[Ruled], kind: tuple[str, str]) -> str:
    found = [one.transition for one in every if (one.collective, one.reduce_op) == kind]
    texts = dict.fromkeys(one.text for one in found if one is not None)
    return " or ".join(texts) or ("no gradient" if found else "–")


def _names(every: Sequence[Ruled]) -> list[str]:
    """Return the names of the functions with a gradient, and of those without, each by module."""
    passing = _by_module(one for one in every if one.transition is not None)
    silent = _by_module(one for one in every if one.transition is None)
    listed = [f"`{module}`: {', '.join(f'`{name}`' for name in names)}" for module, names in passing.items()]
    others = [
        f"`{module}`: {', '.join(f'`{name}`' for name in names)}" if module in passing else f"all of `{module}`"
        for module, names in silent.items()
    ]
    return ["; ".join(listed) or "–", "; ".join(others) or "–"]


def _by_module(found: Iterable[Ruled]) -> dict[str, list[str]]:
    names = sorted({one.path.partition(".")[2] for one in found})
    modules = dict.fromkeys(name.rpartition(".")[0] for name in names)
    return {
        module: [name.rpartition(".")[2] for name in names if name.rpartition(".")[0] == module] for module in modules
    }
