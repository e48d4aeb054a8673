"""Machines for a test: network namespaces of this one, each with its own address, joined by a cable."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

_SECONDS = 20


class Machines(NamedTuple):
    """Namespaces by name; the r-th has address ``10.231.77.(r + 1)``."""

    names: tuple[str, ...]

    def address(self, place: int) -> str:
        return f"10.231.77.{place + 1}"

    def prefix(self, place: int) -> tuple[str, ...]:
        """Return the prefix that runs a command on a machine, with its network interface for gloo."""
        return ("ip", "netns", "exec", self.names[place], "env", f"GLOO_SOCKET_IFNAME=cable{place}")


def reason_against() -> str:
    """Return why this system has no such machines; an empty string if it has."""
    if shutil.which("ip") is None:
        return "this system has no command `ip`"
    if os.geteuid() != 0:
        return "network namespaces need root"
    name = f"collshim{os.getpid()}"
    tried = _ip("netns", "add", name)
    _ip("netns", "del", name)
    return f"no network namespace can be made here: {tried.stderr.strip()}" if tried.returncode else ""


@contextmanager
def machines(count: int) -> Iterator[Machines]:
    """Make connected machines, and remove them afterwards."""
    net = Machines(tuple(f"collshim{os.getpid()}-{place}" for place in range(count)))
    try:
        for name in net.names:
            _done("netns", "add", name)
        first, second = net.names
        _done("link", "add", "cable0", "netns", first, "type", "veth", "peer", "name", "cable1", "netns", second)
        for place, name in enumerate(net.names):
            _done("-n", name, "addr", "add", f"{net.address(place)}/24", "dev", f"cable{place}")
            _done("-n", name, "link", "set", f"cable{place}", "up")
            _done("-n", name, "link", "set", "lo", "up")
        yield net
    finally:
        for name in net.names:
            _ip("netns", "del", name)


def _done(*words: str) -> None:
    seen = _ip(*words)
    if seen.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {seen.stderr.strip()}")


def _ip(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *words], capture_output=True, text=True, timeout=_SECONDS, check=False)
