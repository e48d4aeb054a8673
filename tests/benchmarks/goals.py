"""The goals of the engine, the measured figures, and whether they are reached."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from tests.benchmarks.forms import ALLOCATED, FRESH, GIVEN, SEPARATE, Forms
from tests.benchmarks.host import NUMPY, Host
from tests.benchmarks.measure import (
    CHANCE,
    MARGIN,
    SIZES,
    Cells,
    Figure,
    Samples,
    ratio,
    ratio_of_tenths,
    slower_beyond_noise,
)
from tests.benchmarks.one_host import OWN, SHIM, Times
from tests.benchmarks.operations import COLLECTIVES
from tests.benchmarks.ranks import Tables
from tests.benchmarks.small import ALL_GATHER
from tests.benchmarks.steps import GLOO, Steps, less_communication
from tests.benchmarks.tables import NAMES, Measured, copies, over, table

HOST = {"engine": 2.0, "engine, NumPy": 5.0}
"""Microseconds over the bare call that the host time of the calls in ``NUMPY`` may take."""

OF_TORCH = 1.1
"""The limit of the adapter's times relative to torch.distributed's collectives."""

SMALL_ALL_GATHER = 100.0
"""The limit in microseconds of all_gather of 1 KB among four threads."""

LESS_COMMUNICATION = 1.5
"""How many times as long a training step is to communicate over gloo."""

STEPS = {"check off": 1.05, "check on": 1.25}
"""The limits of a training step's time relative to the same step over gloo."""

OF_ONE_HOST = ((SIZES["4 KB"], 40.0), (SIZES["64 KB"], 8.0), (SIZES["64 MB"], 3.0))
"""How many times as fast as unchecked gloo two processes of one host are to be, up to a number of bytes."""

OF_MPI = 1.5
"""How many times as fast as the faster MPI they are to be, as the geometric mean of all calls and sizes."""

OF_STACKED = 1.1
"""The limit of a form's time relative to the stacked one, and of a copy's relative to a copy."""


class Goal(NamedTuple):
    """One line of the list."""

    subject: str
    wanted: str
    measured: str
    reached: bool


class Findings(NamedTuple):
    """All measured results; those that were not measured are empty."""

    cells: Measured
    one_host: list[Times]
    host: Host = MappingProxyType({})
    adapter: Tables = MappingProxyType({})
    forms: Forms | None = None
    small: Mapping[str, Figure] = MappingProxyType({})
    steps: Steps = MappingProxyType({})


def goals(findings: Findings) -> Iterator[Goal]:
    """Yield every goal that the measured parts can be compared with."""
    if ALL_GATHER in findings.small:
        figure, wanted = findings.small[ALL_GATHER], f"< {SMALL_ALL_GATHER:.0f} us"
        yield Goal(ALL_GATHER, wanted, f"{figure} us", figure.median < SMALL_ALL_GATHER)
    for op, samples in findings.host.items():
        if op in NUMPY:
            yield from _host(op, samples)
    yield from _one_host(findings.one_host)
    yield from _torch(findings.cells)
    for op, cells in findings.adapter.items():
        if op in COLLECTIVES:
            yield _adapter(op, cells)
    for model, samples in findings.steps.items():
        yield from _steps(model, samples)
    for ranks, among in (findings.forms or {}).items():
        for op in among:
            yield from _forms(ranks, op, findings.forms or {})


def _host(op: str, samples: Samples) -> Iterator[Goal]:
    for name, wanted in HOST.items():
        more = over(samples, name, "bare")
        yield Goal(f"host time over bare: {op}, {name}", f"<= {wanted:g} us", f"{more:.2f} us", more <= wanted)


def _one_host(found: Sequence[Times]) -> Iterator[Goal]:
    """Compare two processes of one host, which compare their calls, with gloo and with MPIs that do not."""
    for op in found[0] if found else ():
        times = {n: min(_tenths(cells[op], n, [GLOO])[0] for cells in found) for n in found[0][op]}
        for least, (most, factor) in zip([-1, *(most for most, _ in OF_ONE_HOST)], OF_ONE_HOST, strict=False):
            some = {n: value for n, value in times.items() if least < n <= most}
            if some:
                subject = f"processes of one host against gloo, p10: {op}"
                yield Goal(subject, f">= {factor:g} times", _by_size(some, 1), min(some.values()) >= factor)
    by_mpi = {op: _of_mpis(op, found) for op in (found[0] if found else ())}
    for op, times in by_mpi.items():
        if times:
            subject = f"processes of one host against the faster MPI, p10: {op}"
            yield Goal(subject, "not slower", _by_size(times, 1), min(times.values()) >= 1)
    every = [value for times in by_mpi.values() for value in times.values()]
    if every:
        mean, subject = statistics.geometric_mean(every), "processes of one host against the faster MPI, p10: mean"
        yield Goal(subject, f">= {OF_MPI:g} times", f"{mean:.2f}", mean >= OF_MPI)


def _of_mpis(op: str, found: Sequence[Times]) -> dict[int, float]:
    """Return how many times as fast as the faster MPI a call is, by size; empty without MPIs."""
    ratios = {n: [value for times in found for value in _tenths(times[op], n)] for n in found[0][op]}
    return {n: min(values) for n, values in ratios.items() if values}


def _tenths(cells: Cells, nbytes: int, others: Sequence[str] = ()) -> list[float]:
    """Return how many times as long as collshim's these contenders take; by default, the MPIs."""
    samples = cells[nbytes]
    others = others or [name for name in samples if name not in OWN]
    return [ratio_of_tenths(samples, other, SHIM) for other in others]


def _by_size(times: Mapping[int, float], digits: int) -> str:
    return ", ".join(f"{NAMES[n]} {value:.{digits}f}".strip() for n, value in times.items())


def _torch(measured: Measured) -> Iterator[Goal]:
    """Compare the engine with the check off, or alone, with ``torch.distributed``."""
    for (op, size), cells in measured.items():
        ours = "engine" if size == 1 else "check off"
        for mine in (ours, f"{ours}, NumPy"):
            slower = [n for n, samples in cells.items() if slower_beyond_noise(samples, mine, "torch.distributed")]
            times = {n: ratio(samples, mine, "torch.distributed") for n, samples in cells.items()}
            shown = _by_size(times, 2)
            told = f"{shown}{'; slower at ' if slower else ''}{', '.join(NAMES[n] for n in slower)}"
            yield Goal(f"{mine} / torch.distributed: {op}, {_ranks(size)}", "not slower", told, not slower)


def _adapter(op: str, cells: Cells) -> Goal:
    times = {n: ratio_of_tenths(samples, "collshim.torch", "torch.distributed") for n, samples in cells.items()}
    subject = f"collshim.torch / torch.distributed, p10: {op}"
    return Goal(subject, f"<= {OF_TORCH}", _by_size(times, 2), max(times.values()) <= OF_TORCH)


def _steps(model: str, samples: Samples) -> Iterator[Goal]:
    for kind, limit in STEPS.items():
        share = ratio_of_tenths(samples, kind, GLOO)
        yield Goal(f"step / gloo's, p10: {model}, {kind}", f"<= {limit}", f"{share:.2f}", share <= limit)
    less = less_communication(samples, "check on")
    subject = f"communication of a step, gloo's / ours, p10: {model}"
    yield Goal(subject, f">= {LESS_COMMUNICATION}", f"{less:.1f}", less >= LESS_COMMUNICATION)


def _ranks(size: int) -> str:
    return "1 rank" if size == 1 else f"{size} ranks"


def _forms(ranks: str, op: str, forms: Forms) -> Iterator[Goal]:
    samples = forms[ranks][op]
    for form in ALLOCATED[op]:
        share = ratio(samples, form, FRESH)
        yield Goal(f"{op}, {form} / stacked: {ranks}", f"<= {OF_STACKED}", f"{share:.2f}", share <= OF_STACKED)
    for form in SEPARATE[op]:
        share, more = ratio(samples, form, GIVEN), copies(samples, form)
        subject, enough = f"{op}, {form} / stacked, own: {ranks}", share <= OF_STACKED
        if ranks == "threads":
            yield Goal(subject, f"<= {OF_STACKED}, no copy", f"{share:.2f}", enough)
        else:
            told = f"{share:.2f}, {more:.2f} copies"
            yield Goal(subject, "one copy more", told, enough or more <= OF_STACKED)


def lines(findings: Findings) -> list[str]:
    """Return the list as a table, with a line of counts."""
    listed = list(goals(findings))
    rows = [[goal.subject, goal.wanted, goal.measured, "yes" if goal.reached else "**no**"] for goal in listed]
    count = sum(goal.reached for goal in listed)
    return [
        "### Goals",
        "",
        *table(["goal", "wanted", "measured", "reached"], rows),
        f"{count} of {len(listed)} reached.",
        "",
    ]


NOISE = (
    f"A call is slower than `torch.distributed` beyond noise if its median is more than {MARGIN:.0%} greater and it is"
    f" slower in so many of the paired repetitions that the probability of this by chance is less than {CHANCE:.0%}"
    " (one-sided sign test)."
)
"""The rule, as it is printed."""
