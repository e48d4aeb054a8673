"""``python -m tests.robustness.soak``: mixed calls for many minutes, with communicators made, dropped and closed.

Every minute each rank reports its resources. It fails if a result is wrong, or if after the last minute a rank holds
more than after the second: a tenth more memory, or a key of the store, a descriptor or a thread more. Memory that the
program freed and the C library keeps is reported separately, and large blocks are returned as they are freed: else its
arenas, which differ from run to run, would be measured.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import islice, permutations
from typing import NamedTuple

import torch

import collshim
from collshim import Communicator
from collshim.world import current
from tests.robustness.injection.calls import KINDS
from tests.robustness.injection.stream import Step, Stream, steps
from tests.robustness.scenarios.resources import SETTLE_SECONDS, held, map_large_blocks, resident, trim

SETTLED_AFTER = 2
"""Minutes after which a rank's resources should not grow."""

MEMORY = 1.10
_MEGABYTE = 2**20
_AT_ONCE = 25
"""Steps between two checks of rank 0's clock."""

_LOOKING = threading.Lock()
"""Counting the descriptors of a process takes one: ranks that are threads would count each other's."""

_SPARE_SECONDS = 120.0


class Minute(NamedTuple):
    """A rank's work, and its resources at the end of a minute, when all its groups are closed.

    Attributes:
        resident: bytes in memory, without those that the program freed and the C library kept.
        kept: these.
        keys: of the store; 0 if ranks are threads.
        steps, groups: from the start.
    """

    minute: float
    resident: int
    kept: int
    descriptors: int
    threads: int
    keys: int
    steps: int
    groups: int

    def line(self, rank: int) -> str:
        megabytes = self.resident / _MEGABYTE
        what = f"{self.descriptors} descriptors, {self.threads} threads, {self.keys} keys"
        kept = self.kept / _MEGABYTE
        return (
            f"minute {self.minute:5.1f}, rank {rank}: {megabytes:.1f} MiB (and {kept:.1f} that malloc keeps), {what}; "
            f"{self.steps} steps, {self.groups} communicators"
        )


class Soak:
    """One rank's soak."""

    def __init__(self, seed: int, minutes: float, length: float) -> None:
        self._comm: Communicator = current().communicator
        self._seed = seed
        self._minutes = minutes
        self._length = length
        self._stream = Stream(self._comm, seed)
        self._begun = time.monotonic()
        self._groups = 0

    def minutes(self) -> Iterator[Minute]:
        """Go through the stream, and yield each minute as it ends."""
        self._make_what_stays()
        while (elapsed := self._agreed_elapsed()) < self._minutes * 60:
            limit = elapsed + self._length
            draw = random.Random(f"{self._seed} {elapsed}")
            endless = steps(draw, self._comm.size, [*KINDS])
            while self._agreed_elapsed() < limit:
                for step in islice(endless, _AT_ONCE):
                    self._groups += step.does == "makes"
                    self._stream.finish(step, self._stream.post(step))
            self._stream.end_groups()
            yield self._settled()

    def _make_what_stays(self) -> None:
        """Make every call once between every two ranks: connections that are made on demand stay open."""
        for number, ranks in enumerate(permutations(range(self._comm.size), 2), 1):
            made = Step("makes", number, ranks)
            for step in (made, *(made._replace(does="calls", kinds=(kind,)) for kind in KINDS)):
                self._stream.finish(step, self._stream.post(step))
        self._stream.end_groups()

    def _agreed_elapsed(self) -> float:
        """Return the elapsed time of rank 0's clock."""
        own = torch.tensor(time.monotonic() - self._begun, dtype=torch.float64)
        return float(self._comm.broadcast(own, 0).wait())

    def _settled(self) -> Minute:
        """Return the resources after threads that end groups had their time, while no rank has a pending call."""
        limit, now = time.monotonic() + SETTLE_SECONDS, self._now()
        everything = now.resident
        while time.monotonic() < limit:
            time.sleep(0.2)
            before, now = now, self._now()
            if before[3:6] == now[3:6]:
                break
        self._comm.barrier().wait()
        trim()
        found = self._now()
        self._comm.barrier().wait()
        return found._replace(kept=max(0, everything - found.resident))

    def _now(self) -> Minute:
        store = current().store
        keys = 0 if store is None else int(store.num_keys())
        with _LOOKING:
            own, memory = held(), resident()
        minute = (time.monotonic() - self._begun) / 60
        return Minute(
            minute,
            memory,
            0,
            own.descriptors,
            own.threads,
            keys,
            self._stream.number + 1,
            self._groups,
        )


def run_soak(seed: int, minutes: float, length: float) -> list[Minute]:
    """Return every minute of this rank; rank 0 prints those of all."""
    map_large_blocks()
    comm, found = current().communicator, list[Minute]()
    comm.timeout = 60.0
    for minute in Soak(seed, minutes, length).minutes():
        found.append(minute)
        of_all = comm.gather_object(minute).wait()
        for rank, line in enumerate(of_all or []):
            print(line.line(rank), flush=True)
    return found


def growth(minutes: Sequence[Minute], length: float = 60.0) -> list[str]:
    """Describe the resources that grew after a rank had settled."""
    settled = next((each for each in minutes if each.minute * 60 >= SETTLED_AFTER * length), minutes[-1])
    last, found = minutes[-1], []
    if last.resident > MEMORY * settled.resident:
        found.append(f"{last.resident / _MEGABYTE:.1f} MiB after {settled.resident / _MEGABYTE:.1f} MiB")
    for name in ("descriptors", "threads", "keys"):
        before, after = getattr(settled, name), getattr(last, name)
        if after > before:
            found.append(f"{after} {name} after {before}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: 1 if a rank's resources grow."""
    parser = argparse.ArgumentParser(prog="python -m tests.robustness.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--transport", choices=("processes", "threads"), default="processes")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--check", choices=("on", "off"), default="on", help="whether processes compare their calls")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    failures = soak(chosen.transport, chosen.ranks, chosen.minutes, check=chosen.check == "on", seed=chosen.seed)
    print("\n".join(failures) or "nothing grows")
    return 1 if failures else 0


def soak(
    transport: str, ranks: int, minutes: float, *, check: bool = True, seed: int = 1, length: float = 60.0
) -> list[str]:
    """Return what grew on which rank; ``length`` is that of a minute in seconds."""
    torch.set_num_threads(1)
    limit = 2 * minutes * 60 + _SPARE_SECONDS
    with collshim.options(check=None if transport == "threads" else check):
        found = collshim.launch(run_soak, ranks, ranks=transport, args=(seed, minutes, length), timeout=limit)
    return [f"rank {rank}: {text}" for rank, minutes_of in enumerate(found) for text in growth(minutes_of, length)]


if __name__ == "__main__":
    from tests.robustness import soak as module  # under a name that ranks can import

    sys.exit(module.main())
