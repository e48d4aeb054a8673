"""What a call costs: the engine between threads and between processes, beside torch.distributed.

python tests/benchmarks            the usual sizes, some minutes
python tests/benchmarks --quick    a few sizes, under a minute

Times are medians in microseconds with the tenth percentile behind them, measured on rank 0, contenders in turns.
"""

from __future__ import annotations

import argparse
import os
import platform

import torch
from contenders import NUMBERS, Figures, among_processes, among_threads  # type: ignore[import-not-found]

import collshim

OPS = ("all_reduce", "broadcast", "all_gather", "all_to_all")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes")
    sizes = {"4 B", "4 KB", "1 MB"} if parser.parse_args().quick else set(NUMBERS)
    print(f"torch {torch.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores, us: median (p10)\n")
    _target()
    for op in OPS:
        _compare(op, [name for name in NUMBERS if name in sizes])


def _target() -> None:
    median, tenth = collshim.launch(among_threads, 4, args=("all_gather", 256, "torch"))[0]["engine"]
    print(f"all_gather of 1 KB among four threads: {median:.0f} us ({tenth:.0f}), wanted: under 100\n")


def _compare(op: str, names: list[str]) -> None:
    print(f"{op}, 2 ranks {'threads':>12} {'check on':>16} {'check off':>16} {'torch.dist':>16}   ratios")
    counts = tuple(NUMBERS[name] for name in names)
    processes = collshim.launch(among_processes, 2, ranks="processes", args=(op, counts))[0]
    for name in names:
        threads = collshim.launch(among_threads, 2, args=(op, NUMBERS[name], "torch"))[0]
        _line(name, threads, processes[NUMBERS[name]])
    print()


def _line(name: str, threads: Figures, processes: Figures) -> None:
    local = threads["engine"]
    on, off, plain = (processes[key] for key in ("check on", "check off", "torch.distributed"))
    shown = " ".join(f"{median:9.0f} ({tenth:.0f})".rjust(16) for median, tenth in (local, on, off, plain))
    print(
        f"{name:>10} {shown}   check off / torch.dist {off[0] / plain[0]:.2f}, "
        f"check on / off {on[0] / off[0]:.2f}, gloo / threads {off[0] / local[0]:.1f}"
    )


if __name__ == "__main__":
    main()
