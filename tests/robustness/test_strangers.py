"""Strangers at the ports of ranks: many, silent or not, while ranks work and while their world is made."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from collshim.transports.processes.gloo_device import GlooDevice
from collshim.transports.sockets.connections import Connections
from collshim.transports.sockets.descriptors import borrow, listening_sockets
from tests.robustness.scripts import Script, await_ends, ranks, scripts
from tests.robustness.strangers import (
    KINDS,
    connected_strangers,
    garbage,
    insistent_strangers,
    sequence_numbers,
    silence,
)
from tests.robustness.told import SLACK, read_reports

LOOPBACK = "127.0.0.1"
TIMEOUT = 20.0
HARD = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
GLOO = {"COLLSHIM_SECRET": "the world's own", "COLLSHIM_TRANSPORT": "gloo"}
"""Settings of a world whose groups are made by gloo, which listens at a port meanwhile."""

OWN_WORLD = """
import resource, sys, threading, time, torch
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from tests.robustness.told import tell
import collshim
def total(number):
    return int(collshim.current().communicator.all_reduce(torch.tensor(number)).wait())
def total_of_group(number):
    return int(collshim.current().communicator.subgroup([1, 0]).all_reduce(torch.tensor(number)).wait())
def close():
    collshim.world.close()
"""
TORCHS_WORLD = """
import os, resource, sys, threading, time, torch
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from tests.robustness.told import tell
import torch.distributed as dist, collshim.torch.distributed
dist.init_process_group("collshim")
def total(number):
    given = torch.tensor(number)
    dist.all_reduce(given)
    return int(given)
def close():
    os._exit(0)  # torch's own store, which strangers keep busy, would be asked
"""
WORLDS = {"collshim": OWN_WORLD, "torch.distributed": TORCHS_WORLD}
WORKS = """
over = threading.Event()
def listen():
    sys.stdin.read()
    over.set()
def works():
    total(1)
    print("ready", flush=True)
    threading.Thread(target=listen, daemon=True).start()
    while not total(int(over.is_set())):
        time.sleep(0.002)
    return {last}
tell(works)
close()
"""
SLOWLY = """
from contextlib import contextmanager
from collshim.transports.processes.gloo_device import GlooDevice
listening = GlooDevice.listening
@contextmanager
def listening_longer(device):
    with listening(device) as devices:
        time.sleep(0.5)
        yield devices
GlooDevice.listening = listening_longer
"""
MADE = """
tell(lambda: [total(1), total_of_group(1)])
"""


@pytest.mark.parametrize("says", KINDS.values(), ids=KINDS)
def test_many_strangers_at_every_port_change_nothing(says: Callable[[int], bytes]) -> None:
    """With their initial soft limit the ranks would run out of descriptors."""
    script = OWN_WORLD.format(soft=128, hard=HARD) + WORKS.format(last="total_of_group(1)")
    with ranks(script, 2, COLLSHIM_SECRET="the world's own", COLLSHIM_TIMEOUT=str(TIMEOUT)) as processes:
        assert [process.stdout.readline() for process in processes] == ["ready\n"] * 2
        each = 10 if says is KINDS["store_request"] else 200  # torch writes a page of errors for each of these
        with connected_strangers([process.pid for process in processes], each, says) as taken:
            assert taken > each
            found = await_ends(processes[::-1])  # rank 0 serves the store, and leaves last
    assert [(seen.code, read_reports(seen.out)[0].value) for seen in found] == [(0, 2)] * 2, found


@pytest.mark.parametrize("world", WORLDS)
def test_ranks_without_free_descriptors_continue(world: str) -> None:
    script = WORLDS[world].format(soft=128, hard=128) + WORKS.format(last="total(1)")
    with ranks(script, 2, COLLSHIM_SECRET="the world's own", COLLSHIM_TIMEOUT=str(TIMEOUT)) as processes:
        assert [process.stdout.readline() for process in processes] == ["ready\n"] * 2
        with connected_strangers([process.pid for process in processes], 200):
            found = await_ends(processes[::-1])
    assert [(seen.code, read_reports(seen.out)[0].value) for seen in found] == [(0, 2)] * 2, found


@pytest.mark.parametrize("says", [silence, garbage, KINDS["huge_lengths"]], ids=lambda kind: kind.__name__)
def test_strangers_do_not_disturb_making_groups(says: Callable[[int], bytes]) -> None:
    script = OWN_WORLD.format(soft=128, hard=HARD) + SLOWLY + MADE + "close()\n"
    with (
        ranks(script, 2, **GLOO, COLLSHIM_TIMEOUT=str(TIMEOUT)) as processes,
        insistent_strangers([process.pid for process in processes], 200, says) as taken,
    ):
        found = await_ends(processes[::-1])
    assert len(taken) > 5
    assert [(seen.code, read_reports(seen.out)[0].value) for seen in found] == [(0, [2, 2])] * 2, found


def test_strangers_posing_as_gloo_are_an_error() -> None:
    """gloo's connections have no authentication: while a group is made a stranger may take a rank's place."""
    script = OWN_WORLD.format(soft=128, hard=HARD) + SLOWLY + MADE + "import os; os._exit(0)\n"
    with (
        ranks(script, 2, **GLOO, COLLSHIM_TIMEOUT="3") as processes,
        insistent_strangers([process.pid for process in processes], 200, sequence_numbers),
    ):
        found = await_ends(processes[::-1])
    for seen in found:
        (made,) = read_reports(seen.out)
        assert made.value == [2, 2] or made.ours, seen
        assert made.seconds < 2 * 3 + SLACK  # the world, and the group or its first call


@pytest.mark.parametrize(
    ("soft", "hard", "expected"), [(100, 300, 300), (300, 300, 300), (100, HARD, min(HARD, 65536))]
)
def test_descriptor_limit_is_raised(soft: int, hard: int, expected: int) -> None:
    source = f"""
import resource
from collshim.transports.sockets.descriptors import raise_descriptor_limit
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
raise_descriptor_limit()
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""
    with scripts([Script(source)]) as started:
        seen = started[0].ended()
    assert seen.out == f"({expected}, {hard})\n", seen


def test_gloo_listens_only_while_making_a_group() -> None:
    before = listening_sockets()
    device = GlooDevice("", LOOPBACK)
    (listener,) = listening_sockets() - before
    with borrow(listener) as sock:
        port = sock.getsockname()[1]
    assert not _is_answered(port)
    with device.listening():
        with device.listening():
            assert _is_answered(port)
        assert _is_answered(port)
    assert not _is_answered(port)


def _is_answered(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), timeout=0.3).close()
    except TimeoutError:
        return False
    return True


@contextmanager
def _pair() -> Iterator[tuple[Connections, Connections]]:
    """Yield the connections of ranks 0 and 1; rank 1 knows where rank 0 listens."""
    first, second = (Connections(rank, LOOPBACK, b"the world's own") for rank in (0, 1))
    first.talk.activity = lambda: "works"
    second.open({0: (LOOPBACK, first.port)})
    try:
        yield first, second
    finally:
        second.close()
        first.close()


def test_oldest_of_many_strangers_are_dropped() -> None:
    with _pair() as (first, second), ExitStack() as held:
        strangers = [
            held.enter_context(socket.create_connection((LOOPBACK, first.port), timeout=10)) for _ in range(400)
        ]
        assert all(stranger.recv(1) == b"" for stranger in strangers[:144])
        assert second.talk.activities([0], 10.0) == {0: "works"}
        strangers[-1].settimeout(0.1)
        with pytest.raises(TimeoutError):
            strangers[-1].recv(1)


def test_rank_is_answered_in_a_flood_of_strangers() -> None:
    over = threading.Event()

    def flood(port: int) -> None:
        while not over.is_set():
            socket.create_connection((LOOPBACK, port), timeout=10).close()

    with _pair() as (first, second):
        thread = threading.Thread(target=flood, args=(first.port,), daemon=True)
        thread.start()
        time.sleep(0.1)
        try:
            assert second.talk.activities([0], 10.0) == {0: "works"}
        finally:
            over.set()
            thread.join(20)
