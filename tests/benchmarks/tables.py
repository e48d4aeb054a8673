"""The results as tables, for a terminal as well as a page."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from collshim.conformance.reporting import markdown
from tests.benchmarks.forms import ALLOCATED, COPY, FRESH, GIVEN, SEPARATE, Forms
from tests.benchmarks.host import Host
from tests.benchmarks.making import Makings
from tests.benchmarks.making import rows as making_rows
from tests.benchmarks.marked import rows
from tests.benchmarks.measure import SIZES, Cells, Figure, Samples, figures, ratio, ratio_of_tenths, shown
from tests.benchmarks.one_host import BACKEND, ENGINE, OWN, SHIM
from tests.benchmarks.operations import OPS
from tests.benchmarks.ranks import Tables
from tests.benchmarks.steps import GLOO, NO_EXCHANGE, Steps, less_communication
from tests.benchmarks.waiting import COLLSHIM, Shares
from tests.benchmarks.waiting import rows as waiting_rows

Measured = dict[tuple[str, int], Cells]
"""Times by collective and number of ranks, then by bytes that each rank gives."""

RATIOS = (
    ("check off", "bare"),
    ("check off", "torch.distributed"),
    ("check on", "check off"),
    ("check off", "threads"),
    ("engine", "bare"),
    ("engine", "torch.distributed"),
    ("collshim.torch", "torch.distributed"),
)
"""Pairs of contenders: the first one's median is shown in multiples of the second's, if both were measured."""

NAMES = {nbytes: name for name, nbytes in SIZES.items()} | {0: ""}


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a Markdown table with aligned columns, followed by an empty line."""
    return [*markdown.table(header, rows, aligned=True).splitlines(), ""]


def cells(op: str, size: int, times: Cells) -> list[str]:
    """Return one collective on one number of ranks: a row per size, a column per contender, then the ratios."""
    header, rows = _columns({op: times})
    return [f"### {op}, {size} {'rank' if size == 1 else 'ranks'}", "", *table(header[1:], [row[1:] for row in rows])]


def calls(times: Tables) -> list[str]:
    """Return the engine's other calls."""
    return ["### Other calls of the engine, 2 ranks", "", *table(*_columns(times))]


def one_host(times: Tables, size: int, title: str = "Processes of one host") -> list[str]:
    """Return calls of ranks of one host, and how many times as long gloo and MPI take, by tenth percentiles."""
    header, rows = _columns(times)
    others = [name for name in header[2:] if name not in (ENGINE, SHIM, BACKEND)]
    beside = "".join(f", beside {name}" for name in others if name not in OWN)
    last = [
        [f"{ratio_of_tenths(samples, other, SHIM):.1f}" for other in others]
        for cells in times.values()
        for samples in cells.values()
    ]
    both = [[*row, *ratios] for row, ratios in zip(rows, last, strict=True)]
    head = [*header, *(f"{name} / {SHIM}" for name in others)]
    return [f"### {title}, check on, {size} ranks{beside}", "", *table(head, both)]


def marked(times: dict[str, list[float]]) -> list[str]:
    """Return the cost of tests on ranks."""
    return ["### Tests on ranks", "", *table(["test", "ms", "above a plain test"], rows(times))]


def waiting(shares: Shares) -> list[str]:
    """Return the processor time of ranks that wait."""
    return ["### A rank that waits, 2 ranks", "", *table(["call", GLOO, COLLSHIM], waiting_rows(shares))]


def making(found: Makings) -> list[str]:
    """Return the time to make a group."""
    header = ["step", "ranks", GLOO, COLLSHIM, f"{COLLSHIM} / {GLOO}"]
    return ["### Making a group of processes", "", *table(header, making_rows(found))]


def adapter(times: Tables) -> list[str]:
    """Return collshim.torch.distributed beside torch.distributed; the ratio of tenth percentiles comes last."""
    header, rows = _columns(times)
    tenths = [
        f"{ratio_of_tenths(samples, 'collshim.torch', 'torch.distributed'):.2f}"
        for cells in times.values()
        for samples in cells.values()
    ]
    both = [[*row, last] for row, last in zip(rows, tenths, strict=True)]
    return ["### torch.distributed over gloo, check off, 2 ranks", "", *table([*header, "by p10"], both)]


def _columns(times: Tables) -> tuple[list[str], list[list[str]]]:
    """Return a header and rows: operation, size, each contender's figure if measured, ratios of medians."""
    every = [samples for cells in times.values() for samples in cells.values()]
    names = list(dict.fromkeys(name for samples in every for name in samples))
    pairs = [pair for pair in RATIOS if any(samples.keys() >= set(pair) for samples in every)]
    header = ["call", "size", *names, *(f"{_short(name)} / {_short(other)}" for name, other in pairs)]
    return header, [
        [op, NAMES[nbytes], *_row(samples, names), *_ratios(samples, pairs)]
        for op, cells in times.items()
        for nbytes, samples in cells.items()
    ]


def _short(name: str) -> str:
    return {"torch.distributed": "torch", "collshim.torch": "collshim", "check off": "off", "check on": "on"}.get(
        name, name
    )


def _row(samples: Samples, names: Sequence[str]) -> Iterator[str]:
    columns = figures(samples)
    return (str(columns[name]) if name in columns else "" for name in names)


def _ratios(samples: Samples, pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    return (f"{ratio(samples, *pair):.2f}" if samples.keys() >= set(pair) else "" for pair in pairs)


def price(times: Measured) -> list[str]:
    """Return the cost of the check per call, by size."""
    lines: list[str] = []
    for size in sorted({size for _, size in times if size > 1}):
        ops = [op for op in OPS if (op, size) in times]
        rows = [[NAMES[nbytes], *(_price(times[op, size][nbytes]) for op in ops)] for nbytes in times[ops[0], size]]
        lines += [f"### The check's price, {size} ranks", "", *table(["size", *ops], rows)]
    return lines


def _price(samples: Samples) -> str:
    more = statistics.median(samples["check on"]) - statistics.median(samples["check off"])
    return f"{'+' if more >= 0 else '-'}{shown(abs(more) * 1e6)} us ({ratio(samples, 'check on', 'check off'):.2f})"


def small(times: Mapping[str, Figure]) -> list[str]:
    """Return small calls between threads, and the hand-overs that they consist of."""
    rows = [[name, str(figure)] for name, figure in times.items()]
    return ["### Small calls between threads", "", *table(["what", "us"], rows)]


def steps(times: Steps) -> list[str]:
    """Return the training steps over gloo and over the backend, and their ratios."""
    kinds = ("check off", "check on")
    header = [
        "model",
        GLOO,
        *kinds,
        NO_EXCHANGE,
        *(f"{kind} / {GLOO}, p10" for kind in kinds),
        "communication, gloo / on",
    ]
    rows = []
    for model, samples in times.items():
        reported = figures(samples)
        ratios = [f"{ratio_of_tenths(samples, kind, GLOO):.2f}" for kind in kinds]
        ratios.append(f"{less_communication(samples, 'check on'):.1f}")
        rows.append([model, *(str(reported[kind]) for kind in (GLOO, *kinds, NO_EXCHANGE)), *ratios])
    return ["### Steps of DistributedDataParallel, 2 ranks", "", *table(header, rows)]


def host(times: Host) -> list[str]:
    """Return the host time of every contender, and of the engine and the adapter over their baselines."""
    pairs = (("engine", "bare"), ("engine, NumPy", "bare"), ("collshim.torch", "torch.distributed"))
    names = ["bare", "engine", "engine, NumPy", "torch.distributed", "collshim.torch"]
    header = ["call", *names, *(f"{_short(name)} - {_short(other)}" for name, other in pairs), "collshim / torch"]
    rows = [
        [op, *(_least(samples, name) for name in names), *(_more(samples, *pair) for pair in pairs), _share(samples)]
        for op, samples in times.items()
    ]
    return ["### Host time, check off", "", *table(header, rows)]


def _least(samples: Samples, name: str) -> str:
    if name not in samples:
        return ""
    return f"{min(samples[name]) * 1e6:.2f} ({statistics.median(samples[name]) * 1e6:.2f})"


def _more(samples: Samples, name: str, other: str) -> str:
    return f"{over(samples, name, other):.2f}" if samples.keys() >= {name, other} else ""


def _share(samples: Samples) -> str:
    if not samples.keys() >= {"collshim.torch", "torch.distributed"}:
        return ""
    return f"{min(samples['collshim.torch']) / min(samples['torch.distributed']):.2f}"


def over(samples: Samples, name: str, other: str) -> float:
    """Return the microseconds by which ``name``'s least time exceeds ``other``'s."""
    return (min(samples[name]) - min(samples[other])) * 1e6


def forms(times: Forms, nbytes: int) -> list[str]:
    """Return the cost of the forms over the stacked one."""
    lines = [f"### Forms of {NAMES[nbytes]}, 2 ranks", ""]
    header = ["ranks", "collective", "form", "us: median (p10)", "over"]
    rows = [
        [ranks, op, form, str(figures(samples)[form]), _over(samples, op, form)]
        for ranks, among in times.items()
        for op, samples in among.items()
        for form in samples
    ]
    return lines + table(header, rows)


def _over(samples: Samples, op: str, form: str) -> str:
    if form in ALLOCATED[op]:
        return f"{ratio(samples, form, FRESH):.2f} of {FRESH}"
    if form in SEPARATE[op]:
        return f"{ratio(samples, form, GIVEN):.2f} of {GIVEN}; {copies(samples, form):.2f} copies more"
    return ""


def copies(samples: Samples, form: str) -> float:
    """Return how many copies a form takes over the caller's own stacked one."""
    middle = {name: statistics.median(samples[name]) for name in (form, GIVEN, COPY)}
    return (middle[form] - middle[GIVEN]) / middle[COPY]
