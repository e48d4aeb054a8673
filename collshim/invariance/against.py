"""Compares two programs on the same ranks, such as an original that imports a stand-in, and its port to torch."""

from __future__ import annotations

import json
import linecache
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from torch import Tensor

from collshim.invariance.check import DIFFERENT, SAME, listed, ranks_text, trains
from collshim.invariance.program import Program, Switches, run
from collshim.invariance.records import Event, Parameter, RankRecord
from collshim.invariance.relations import Tolerance, as_float, factor_of
from collshim.invariance.table import short
from collshim.invariance.verdict import ONE, name_of, names_of_factors, tolerance_of

_TERMS = 1 << 16
"""The number of terms in a sum that the tolerance allows for: two frameworks add in different orders."""


@dataclass
class Pair:
    """A parameter that both programs have.

    Attributes:
        original, port: its name in each program.
        kind: how the gradients compare: "1" if they are equal, a factor, or "differs".
        ranks: the ranks on which ``kind`` is not "1".
    """

    original: str
    port: str
    kind: str
    ranks: list[int] = field(default_factory=list)


@dataclass
class Parting:
    """Where two programs diverge: the last collective in which they agree, and the first in which they differ.

    Attributes:
        agreed: the lines of the last collective in which they agree, in the original and in the port; None if there
            is none.
        parted: the lines of the first collective in which they differ; None if all collectives agree.
        text: what differs.
    """

    agreed: tuple[str, str] | None
    parted: tuple[str, str] | None
    text: str


@dataclass
class Difference:
    """The result of the comparison on one number of ranks.

    Attributes:
        size: the number of ranks.
        losses: the losses of the original and of the port by step, each the mean over the ranks.
        pairs: the gradients of both programs.
        matched: how the gradients were matched, "by name" or "by order".
        missing: the names that only one of the programs has.
        loaded: the number of the port's parameters that were set to the original's initial values.
        trains: whether both programs have gradients other than zero.
        parting: where the programs diverge; None if they agree.
    """

    size: int
    losses: tuple[list[float], list[float]]
    pairs: list[Pair]
    matched: str
    missing: list[str]
    loaded: int
    tolerance: float
    trains: bool = True
    parting: Parting | None = None

    @property
    def loss_step(self) -> int | None:
        """The first step whose losses differ; None if none do."""
        ours, theirs = self.losses
        if len(ours) != len(theirs):
            return min(len(ours), len(theirs))
        allowed = [4 * self.tolerance * max(abs(one), 1e-3) for one in ours]
        steps = zip(ours, theirs, allowed, strict=True)
        return next((step for step, (one, other, most) in enumerate(steps) if not abs(one - other) <= most), None)

    @property
    def is_same(self) -> bool:
        """Whether the programs compute the same losses and gradients."""
        agree = self.loss_step is None and not self.missing and not self.wrong
        return agree and bool(self.pairs) and self.trains

    @property
    def wrong(self) -> list[Pair]:
        """The gradients that differ."""
        return [pair for pair in self.pairs if pair.kind != ONE]


@dataclass
class Differences:
    """The results of the comparison on all numbers of ranks.

    Attributes:
        original, port: the programs' names.
        runs: one result for each number of ranks.
    """

    original: str
    port: str
    runs: list[Difference]
    seconds: float = 0.0

    @property
    def code(self) -> int:
        """The exit code."""
        return SAME if all(one.is_same for one in self.runs) else DIFFERENT

    def verdict(self) -> str:
        """Return the finding in one sentence."""
        wrong = next((one for one in self.runs if not one.is_same), None)
        sizes = " and ".join(str(one.size) for one in self.runs)
        if wrong is None:
            count = len(self.runs[0].pairs)
            return (
                f"{self.port} computes what {self.original} does, on {sizes} ranks: the losses and {count} gradients."
            )
        texts = list[str]()
        if wrong.loss_step is not None:
            texts.append(f"the losses first differ at step {wrong.loss_step + 1}")
        if wrong.wrong:
            texts.append(f"{len(wrong.wrong)} of {len(wrong.pairs)} gradients differ")
        if wrong.missing:
            texts.append(f"only one of them has {listed(wrong.missing)}")
        if wrong.pairs and not wrong.trains:
            texts.append("one of them does not train: its gradients are all zero")
        if not wrong.pairs:
            texts.append("they have no gradients to compare")
        right = [str(one.size) for one in self.runs if one.is_same]
        more = f" (on {' and '.join(right)} they agree)" if right else ""
        return f"{self.port} differs from {self.original} on {ranks_text(wrong.size)}{more}: {', '.join(texts)}."


def compare_programs(
    original: Program,
    port: Program,
    sizes: Sequence[int],
    switches: Switches,
    progress: Callable[[str], None] = lambda text: None,
) -> Differences:
    """Run two programs on the same numbers of ranks, and compare their losses and gradients.

    Raises:
        RankError: one of the programs fails.
    """
    began = time.monotonic()
    if switches.kind == "auto":
        switches = replace(switches, kind="processes")
    found = Differences(original.name, port.name, [])
    for size in sizes:
        progress(f"runs {original.name} and {port.name} on {ranks_text(size)}")
        found.runs.append(_compare(original, port, size, switches))
    found.seconds = time.monotonic() - began
    return found


def _compare(original: Program, port: Program, size: int, switches: Switches) -> Difference:
    ours = run(original, size, switches, traces=True, to_end=True)
    theirs = run(port, size, switches, traces=True, to_end=True)
    matched, names, missing = _match(_with_gradients(ours), _with_gradients(theirs))
    values = [_differing_values(one, other, names) for one, other in zip(ours, theirs, strict=True)]
    if any(values):
        theirs = run(port, size, switches, traces=True, to_end=True, values=values)
    tolerance = tolerance_of(ours[0], _TERMS)
    pairs = [_pair(name, other, ours, theirs, tolerance) for name, other in names.items()]
    losses = _mean(ours), _mean(theirs)
    loaded = len(values[0]) if values else 0
    found = Difference(size, losses, pairs, matched, missing, loaded, tolerance.relative)
    found.trains = all(any(trains(record) for record in records) for records in (ours, theirs))
    if not found.is_same:
        found.parting = _parting(ours[0], theirs[0], tolerance)
    return found


def _with_gradients(records: Sequence[RankRecord]) -> list[Parameter]:
    return [own for own in records[0].parameters if own.is_compared and own.gradient is not None]


def _match(ours: Sequence[Parameter], theirs: Sequence[Parameter]) -> tuple[str, dict[str, str], list[str]]:
    """Return how the gradients of two programs were matched, the matching names, and the names that only one has."""
    names = {own.name for own in ours}, {own.name for own in theirs}
    common = names[0] & names[1]
    shapes = [[tuple(own.gradient.shape) for own in side if own.gradient is not None] for side in (ours, theirs)]
    if not common and shapes[0] == shapes[1]:
        return "by order", {one.name: other.name for one, other in zip(ours, theirs, strict=True)}, []
    return "by name", {own.name: own.name for own in ours if own.name in common}, sorted(names[0] ^ names[1])


def _differing_values(one: RankRecord, other: RankRecord, names: dict[str, str]) -> dict[int, Tensor]:
    """Return the original's initial values for the port's parameters that start differently, by parameter number."""
    known = {names[own.name]: own.value for own in one.parameters if own.is_compared and own.name in names}
    found = dict[int, Tensor]()
    for number, own in enumerate(other.parameters):
        value = known.get(own.name)
        if value is None or own.value is None or own.value.shape != value.shape or not own.is_compared:
            continue
        if not bool((own.value == value).all()):
            found[number] = value
    return found


def _pair(
    name: str, other: str, ours: Sequence[RankRecord], theirs: Sequence[RankRecord], tolerance: Tolerance
) -> Pair:
    factors = list[float | None]()
    for one, two in zip(ours, theirs, strict=True):
        expected = next(own.gradient for own in one.parameters if own.name == name and own.is_compared)
        actual = next((own.gradient for own in two.parameters if own.name == other and own.is_compared), None)
        if expected is None or actual is None:
            factors.append(1.0 if expected is actual else None)
        else:
            factors.append(factor_of(as_float(actual).reshape(expected.shape), as_float(expected), tolerance))
    names = names_of_factors(len(ours), {})
    kinds = ["differs" if factor is None else name_of(factor, names) for factor in factors]
    wrong = [rank for rank, kind in enumerate(kinds) if kind != ONE]
    return Pair(name, other, kinds[wrong[0]] if wrong else ONE, wrong)


def _mean(records: Sequence[RankRecord]) -> list[float]:
    """Return the mean of the ranks' losses for each step."""
    known = [record.losses for record in records if record.losses]
    return [sum(losses) / len(losses) for losses in zip(*known, strict=False)]


def _parting(one: RankRecord, other: RankRecord, tolerance: Tolerance) -> Parting | None:
    """Find the first collective of the original that the port does not call with the same data."""
    ours, theirs = (
        [event for event in record.events if event.is_collective and event.before is not None]
        for record in (one, other)
    )
    left, agreed = list(theirs), None
    for event in ours:
        found = next((twin for twin in left if _same(event.before, twin.before, tolerance)), None)
        if found is None:
            if not left:
                return Parting(agreed, (event.sites[0], ""), f"the port has no matching {event.name}")
            twin = left[0]
            text = f"{_named(event, twin)}: the data sent differs{_times(event.before, twin.before, tolerance)}"
            return Parting(agreed, (event.sites[0], twin.sites[0]), text)
        left = [twin for twin in left if twin is not found]
        if not _same(event.value, found.value, tolerance):
            times = _times(event.value, found.value, tolerance)
            text = f"{_named(event, found)}: the data sent is the same, but the result differs{times}"
            return Parting(agreed, (event.sites[0], found.sites[0]), text)
        agreed = event.sites[0], found.sites[0]
    if left:
        return Parting(agreed, ("", left[0].sites[0]), f"the original has no matching {left[0].name}")
    return (
        Parting(agreed, None, "all collectives agree; the code after the last one computes different values")
        if agreed
        else None
    )


def _same(one: Tensor | None, other: Tensor | None, tolerance: Tolerance) -> bool:
    if one is None or other is None:
        return one is other
    ours, theirs = as_float(one).reshape(-1), as_float(other).reshape(-1)
    return tolerance.alike(theirs, ours)


def _times(one: Tensor | None, other: Tensor | None, tolerance: Tolerance) -> str:
    if one is None or other is None or one.numel() != other.numel():
        return ""
    factor = factor_of(as_float(other).reshape(-1), as_float(one).reshape(-1), tolerance)
    return "" if factor is None else f": the port's is {factor:.4g} times the original's"


def _named(event: Event, twin: Event) -> str:
    return event.name if event.name == twin.name else f"{event.name} and {twin.name}"


def show(found: Differences, console: Console, *, everything: bool = False) -> None:
    """Print the result."""
    console.print(f"[bold]{escape(found.verdict())}[/bold]", highlight=False)
    for one in found.runs:
        console.print()
        console.print(_losses(one))
        wrong = one.pairs if everything else one.wrong
        if wrong:
            table = Table("gradient", "in the port", f"on {ranks_text(one.size)}", box=None, pad_edge=False)
            for pair in wrong[:12]:
                table.add_row(escape(pair.original), escape(pair.port), escape(pair.kind))
            console.print(table)
    parting = next((one.parting for one in found.runs if one.parting is not None), None)
    if parting is not None:
        _show_parting(parting, console)
    first = found.runs[0]
    loaded = f"{first.loaded} parameters of the port were set to those of the original; " if first.loaded else ""
    text = f"Gradients were matched {first.matched}; {loaded}equal means: within {first.tolerance:.1e} of the norm."
    console.print(f"[dim]{text} {found.seconds:.1f} s.[/dim]", highlight=False)


def _losses(one: Difference) -> Table:
    table = Table(f"loss on {ranks_text(one.size)}", "original", "port", box=None, pad_edge=False)
    for step, (ours, theirs) in enumerate(zip(*one.losses, strict=False)):
        mark = "red" if one.loss_step is not None and step >= one.loss_step else "default"
        table.add_row(f"step {step + 1}", f"{ours:.6g}", f"[{mark}]{theirs:.6g}[/{mark}]")
    return table


def _show_parting(parting: Parting, console: Console) -> None:
    console.print()
    for title, sites in (("They last agree in", parting.agreed), ("They first differ in", parting.parted)):
        if sites is not None:
            console.print(f"[bold]{title}[/bold]", highlight=False)
            for name, site in zip(("original", "port"), sites, strict=True):
                if site:
                    path, _, line = site.rpartition(":")
                    source = linecache.getline(path, int(line)).strip()
                    console.print(f"  {name}: {escape(short(site))}  {escape(source)}", highlight=False)
    console.print(f"  {escape(parting.text)}", highlight=False)
    console.print()


def as_json(found: Differences) -> str:
    """Return the result as JSON."""
    runs = [
        {
            "ranks": one.size,
            "same": one.is_same,
            "losses": {"original": one.losses[0], "port": one.losses[1]},
            "gradients": [vars(pair) for pair in one.pairs],
            "matched": one.matched,
            "missing": one.missing,
            "parting": None if one.parting is None else vars(one.parting),
        }
        for one in found.runs
    ]
    facts = {"original": found.original, "port": found.port, "verdict": found.verdict(), "code": found.code}
    return json.dumps({**facts, "runs": runs, "seconds": round(found.seconds, 2)}, indent=2)
