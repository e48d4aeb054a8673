"""The cost of a call: the engine between threads and between processes, beside its foundations.

python -m tests.benchmarks            the usual cells, some minutes
python -m tests.benchmarks --quick    fewer sizes, two ranks, few repetitions: under a minute
python -m tests.benchmarks --all      every cell, more repetitions
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks import forms, goals, host, making, marked, one_host, page, ranks, small, steps, tables, waiting
from tests.benchmarks.measure import SIZES
from tests.benchmarks.operations import OPERATIONS, OPS
from tests.benchmarks.ranks import Job

NAMES = tuple(OPERATIONS)
SECTIONS = ("shared", "waiting", "making", "marked", "host", "cells", "calls", "adapter", "forms", "steps")


class Effort(NamedTuple):
    """The amount of measuring.

    Attributes:
        sizes, ranks: the cells.
        calls, adapter: sizes of the engine's other calls, and of the adapter's.
        share: of the usual repetitions.
        blocks: how often threads and processes take turns.
        thorough: NumPy arrays with the check on too.
        form: the size of lists and other forms.
        shared, processes: the sizes, and the numbers of processes, of calls between ranks of one host.
        mpis: the environments of MPIs that are contenders there.
        skipped: sizes with numbers of ranks that take too much time or memory.
    """

    sizes: tuple[str, ...]
    ranks: tuple[int, ...]
    share: float
    blocks: int
    calls: tuple[str, ...] = ("4 B", "4 KB", "64 KB", "1 MB")
    adapter: tuple[str, ...] = ("64 B", "4 KB", "64 KB", "1 MB")
    thorough: bool = False
    form: str = "64 MB"
    skipped: tuple[tuple[str, int], ...] = (("64 MB", 4),)
    shared: tuple[str, ...] = ("4 B", "4 KB", "64 KB", "1 MB", "16 MB", "64 MB")
    processes: tuple[int, ...] = (2, 4, 8)
    mpis: tuple[Path, ...] = ()


CELLS = ("4 B", "4 KB", "64 KB", "1 MB", "16 MB", "64 MB")
QUICK = Effort(
    ("4 B", "4 KB", "1 MB"), (2,), 0.2, 1, calls=("4 KB",), adapter=("4 KB",), shared=("4 KB", "1 MB"), processes=(2,)
)
USUAL = Effort(CELLS, (1, 2, 4), 1.0, 2)
ALL = Effort(CELLS, (1, 2, 4), 2.0, 4, thorough=True, skipped=())

REPEATS = {"4 B": 150, "64 B": 150, "4 KB": 150, "64 KB": 100, "1 MB": 40, "16 MB": 6, "64 MB": 4}
"""Repetitions in a block."""

ADAPTER_REPEATS, ADAPTER_BLOCKS = 300, 2
"""Repetitions of the adapter's calls at any size, and how many times as many blocks: its goals are close to chance."""

HEAD = (
    "Times in us: median (tenth percentile); host times: the least of all bursts (their median). Ratios are those of"
    " medians, of host times those of the least; by p10: of tenth percentiles."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print, and write if requested."""
    chosen = _parser().parse_args(arguments)
    effort = _effort(chosen)
    lines: list[str] = []
    with _others(chosen.busy):
        for line in _lines(effort, chosen.ops, chosen.sections):
            print(line, flush=True)
            lines.append(line)
    if chosen.write is not None:
        page.write(chosen.write, lines)


@contextmanager
def _others(count: int) -> Iterator[None]:
    """Let so many other programs compute meanwhile."""
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--quick", action="store_true", help="fewer cells, few repetitions")
    amount.add_argument("--all", action="store_true", help="every cell, more repetitions")
    parser.add_argument("--ops", nargs="+", choices=NAMES, default=NAMES, help="only these calls")
    parser.add_argument("--sizes", nargs="+", choices=tuple(SIZES), help='only these sizes, "4 KB" and so on')
    parser.add_argument("--ranks", nargs="+", type=int, choices=(1, 2, 4, 8), help="only these numbers of ranks")
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=SECTIONS, help="only these parts")
    parser.add_argument(
        "--mpi", nargs="+", type=Path, default=[], metavar="FOLDER", help="environments with mpi4py and an MPI"
    )
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="beside so many other programs that compute")
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="write the figures into this page, between its markers"
    )
    return parser


def _effort(chosen: argparse.Namespace) -> Effort:
    effort = QUICK if chosen.quick else ALL if chosen.all else USUAL
    if chosen.sizes:
        sizes = tuple(chosen.sizes)
        effort = effort._replace(sizes=sizes, calls=sizes, adapter=sizes, shared=sizes, form=sizes[-1], skipped=())
    if chosen.ranks:
        effort = effort._replace(ranks=tuple(chosen.ranks), processes=tuple(chosen.ranks))
    return effort._replace(mpis=tuple(chosen.mpi))


def _lines(effort: Effort, ops: Sequence[str], sections: Sequence[str]) -> Iterator[str]:
    """Yield each line as soon as it is known; the goals, which need all results, come last."""
    start = time.monotonic()
    yield from (*page.origin(), HEAD, "")
    findings = goals.Findings({}, [])
    yield from _for_users(effort, ops, sections, findings.one_host)
    if "host" in sections:
        findings = findings._replace(host=host.measure_host(ops, max(10, int(150 * effort.share))))
        yield from tables.host(findings.host)
    if "cells" in sections:
        yield from _cells(effort, [op for op in ops if op in OPS], findings.cells)
        findings = findings._replace(small=small.measure_small(max(1, int(5 * effort.share))))
        yield from tables.small(findings.small)
    others = [op for op in ops if op not in OPS and OPERATIONS[op].engine is not None]
    if "calls" in sections and others:
        yield from tables.calls(ranks.measure_engine(Job(others, _repeats(effort, effort.calls)), 2, effort.blocks))
    torchs = [op for op in ops if OPERATIONS[op].gloo and OPERATIONS[op].torch is not None]
    if "adapter" in sections and torchs:
        repeats = {SIZES[name]: max(3, int(ADAPTER_REPEATS * effort.share)) for name in effort.adapter}
        blocks = ADAPTER_BLOCKS * effort.blocks
        findings = findings._replace(adapter=ranks.measure_adapter(Job(torchs, repeats), 2, blocks))
        yield from tables.adapter(findings.adapter)
    if "forms" in sections:
        nbytes = SIZES[effort.form]
        findings = findings._replace(forms=forms.measure_forms(nbytes, max(3, int(8 * effort.share)), effort.blocks))
        yield from tables.forms(findings.forms or {}, nbytes)
    if "steps" in sections:
        findings = findings._replace(steps=steps.measure_steps(effort.share, effort.blocks))
        yield from tables.steps(findings.steps)
    yield from (*goals.lines(findings), goals.NOISE, "")
    print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)


def _for_users(
    effort: Effort, ops: Sequence[str], sections: Sequence[str], found: list[one_host.Times]
) -> Iterator[str]:
    """Measure what users get who change nothing; ``found`` gets the times of two processes of one host."""
    if "shared" in sections:
        yield from _shared(effort, ops, found)
    if "waiting" in sections:
        yield from tables.waiting(waiting.measure_waiting(max(0.1, 5 * effort.share)))
    if "making" in sections:
        yield from tables.making(making.measure_making(effort.processes, max(3, int(40 * effort.share))))
    if "marked" in sections:
        yield from tables.marked(marked.measure_marked(max(2, int(50 * effort.share))))


def _shared(effort: Effort, ops: Sequence[str], found: list[one_host.Times]) -> Iterator[str]:
    """Measure ranks that are processes of one host, beside each MPI; ``found`` gets the times of two ranks."""
    names = tuple(name for name in one_host.CALLS if name in ops or name == one_host.PINGPONG)
    for size in effort.processes:
        sizes = effort.shared if size == 2 else effort.shared[:4]
        asked = one_host.Asked(names, sizes, max(2, int(one_host.TURNS * effort.share)))
        for times in one_host.measure(asked, size, effort.mpis):
            if size == 2:
                found.append(times)
            yield from tables.one_host(times, size)
        forms = tuple(name for name in one_host.FORMS if name in ops and size == 2)
        if forms:
            for times in one_host.measure(asked._replace(calls=forms, sizes=sizes[:4]), size):
                yield from tables.one_host(times, size, "Other forms between processes of one host")


def _cells(effort: Effort, ops: Sequence[str], measured: tables.Measured) -> Iterator[str]:
    """Measure each collective on each number of ranks in a world of its own, and fill ``measured``."""
    kinds = ("threads", "check off", "engine", *(["check on"] if effort.thorough else []))
    for size in effort.ranks:
        repeats = _repeats(effort, [name for name in effort.sizes if (name, size) not in effort.skipped])
        for op in ops:
            measured[op, size] = ranks.measure_engine(Job([op], repeats, numpy=kinds), size, effort.blocks)[op]
            yield from tables.cells(op, size, measured[op, size])
    yield from tables.price(measured)


def _repeats(effort: Effort, sizes: Sequence[str]) -> dict[int, int]:
    return {SIZES[name]: max(3, int(REPEATS[name] * effort.share)) for name in sizes}


if __name__ == "__main__":
    main()
