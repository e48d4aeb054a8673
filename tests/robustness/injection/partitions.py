"""A network between the ranks of a trial that can be cut: two network namespaces, the victim alone in the second."""

from __future__ import annotations

import itertools
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from tests.robustness.injection.trial import Trial
from tests.robustness.namespaces import Machines, machines, reason_against

_ONE_AT_A_TIME = threading.Lock()
"""A lock, because a process's namespaces have its name."""

_SECONDS = 20
_RULES = ("add table inet cut", "add chain inet cut coming { type filter hook input priority 0; }")


class Network:
    """The ranks' place: this process's own network, which is never cut."""

    is_apart = False

    def place_of(self, rank: int) -> tuple[str, ...]:
        """Return the last fields of a rank's ``Place``."""
        return ()

    def cut(self) -> None:
        """Make the fault happen."""


class _Apart(Network):
    is_apart = True

    def __init__(self, trial: Trial, net: Machines) -> None:
        self._trial = trial
        self._net = net
        self._places = itertools.count()

    def place_of(self, rank: int) -> tuple[str, ...]:
        """Return the victim's machine, or that of all others; rank 0's serves the store."""
        side = self._side(rank)
        return (self._net.names[side], f"cable{side}", self._net.address(self._side(0)))

    def _side(self, rank: int) -> int:
        return int(rank == self._trial.victim)

    def cut(self) -> None:
        """Drop incoming data of both machines, or of the victim's; or disconnect the cable."""
        if self._trial.detail == "link down":
            _run("ip", "-n", self._net.names[1], "link", "set", "cable1", "down")
            return
        for side in (0, 1) if self._trial.detail == "both ways" else (1,):
            for rule in (*_RULES, f"add rule inet cut coming iifname cable{side} drop"):
                _run("ip", "netns", "exec", self._net.names[side], "nft", rule)


def _run(*words: str) -> None:
    subprocess.run(words, check=True, timeout=_SECONDS, capture_output=True)


@cache
def reason() -> str:
    """Return why this system has no such network; an empty string if it has."""
    return reason_against()


@contextmanager
def network(trial: Trial) -> Iterator[Network]:
    """Make the network of a trial, and remove it afterwards."""
    if trial.kind != "partition":
        yield Network()
        return
    with _ONE_AT_A_TIME, machines(2) as net:
        yield _Apart(trial, net)
