"""What was measured, as tables that a terminal shows as well as a page."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from tests.benchmarks.contenders import OPS
from tests.benchmarks.forms import ALLOCATED, COPY, FRESH, GIVEN, SEPARATE, Forms
from tests.benchmarks.host import WANTED, HostTime
from tests.benchmarks.measure import SIZES, Figure, Samples, figures, ratio, shown

Measured = dict[tuple[str, int], dict[int, Samples]]
"""Times by collective and number of ranks, then by bytes that each rank gives."""

RATIOS = (
    ("check off", "bare"),
    ("check off", "torch.distributed"),
    ("check on", "check off"),
    ("check off", "threads"),
    ("engine", "bare"),
    ("engine", "torch.distributed"),
)
"""Whose median is told in multiples of whose, where both were measured."""

NAMES = {nbytes: name for name, nbytes in SIZES.items()}


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table whose columns stand under each other, followed by an empty line."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return [*(f"| {' | '.join(map(str.ljust, line, widths))} |" for line in lines), ""]


def cells(op: str, size: int, found: Mapping[int, Samples]) -> list[str]:
    """One collective on one number of ranks: a row for each size, a column for each contender, then the ratios."""
    first = next(iter(found.values()))
    pairs = [(name, other) for name, other in RATIOS if name in first and other in first]
    header = ["size", *first, *(f"{_short(name)} / {_short(other)}" for name, other in pairs)]
    rows = [[NAMES[nbytes], *_row(samples), *_ratios(samples, pairs)] for nbytes, samples in found.items()]
    return [f"### {op}, {size} {'rank' if size == 1 else 'ranks'}", "", *table(header, rows)]


def _short(name: str) -> str:
    return {"torch.distributed": "torch", "check off": "off", "check on": "on"}.get(name, name)


def _row(samples: Samples) -> list[str]:
    return [str(figure) for figure in figures(samples).values()]


def _ratios(samples: Samples, pairs: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{ratio(samples, name, other):.2f}" for name, other in pairs]


def price(found: Measured) -> list[str]:
    """What the check adds to a call, by size."""
    lines: list[str] = []
    for size in sorted({size for _, size in found if size > 1}):
        ops = [op for op in OPS if (op, size) in found]
        rows = [[NAMES[nbytes], *(_price(found[op, size][nbytes]) for op in ops)] for nbytes in found[ops[0], size]]
        lines += [f"### The check's price, {size} ranks", "", *table(["size", *ops], rows)]
    return lines


def _price(samples: Samples) -> str:
    more = statistics.median(samples["check on"]) - statistics.median(samples["check off"])
    return f"{'+' if more >= 0 else '-'}{shown(abs(more) * 1e6)} us ({ratio(samples, 'check on', 'check off'):.2f})"


def small(found: Mapping[str, Figure]) -> list[str]:
    """Small calls between threads, and the hand-overs that they are made of."""
    rows = [[name, str(figure)] for name, figure in found.items()]
    return ["### Small calls between threads", "", *table(["what", "us"], rows)]


def host(found: Sequence[HostTime]) -> list[str]:
    """Host time over the bare call, with what is wanted beside."""
    header = ["call", "bare", *(f"{kind} over bare (wanted: {wanted:g})" for kind, wanted in WANTED.items())]
    rows = [[time.call, _least(*time.bare), *(_least(over.least, over.median) for over in time.over)] for time in found]
    return ["### Host time of post and wait, check off", "", *table(header, rows)]


def _least(least: float, median: float) -> str:
    return f"{least:.2f} ({median:.2f})"


def forms(found: Forms, nbytes: int) -> list[str]:
    """What the forms cost over the stacked one."""
    lines = [f"### Forms of {NAMES[nbytes]}, 2 ranks", ""]
    header = ["ranks", "collective", "form", "us: median (p10)", "over"]
    rows = [
        [ranks, op, form, str(figures(samples)[form]), _over(samples, op, form)]
        for ranks, among in found.items()
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
    """How many copies a form takes over the caller's own stacked one."""
    middle = {name: statistics.median(samples[name]) for name in (form, GIVEN, COPY)}
    return (middle[form] - middle[GIVEN]) / middle[COPY]
