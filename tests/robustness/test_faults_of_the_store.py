"""The store while its server is stopped, silent, or contacted by strangers: no rank waits beyond its deadline."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from torch.distributed import DistNetworkError, HashStore, Store, TCPStore

from collshim.errors import WorldError
from collshim.transports.rendezvous.client import StoreClient, StoreSilentError, connect
from collshim.transports.rendezvous.serving import reach_store
from tests.robustness.scripts import await_ends, ranks
from tests.robustness.told import SLACK, read_reports

TIMEOUT = 2.0
CALLS = """
import os, time, torch, collshim
from tests.robustness.told import tell
comm = collshim.current().communicator
comm.barrier().wait()
print("ready", os.environ["MASTER_PORT"], flush=True)
"""
REDUCES_FOR_EVER = """
def reduces():
    while True:
        comm.all_reduce(torch.ones(3)).wait()
tell(reduces)
tell(lambda: comm.all_reduce(torch.ones(3)).wait())
"""
RECEIVES = """
if comm.rank == 1:
    tell(lambda: comm.recv(2, like=torch.ones(3)).wait())
else:
    time.sleep(1000)
"""
COUNTS = """
def counts():
    for step in range(120):
        time.sleep(0.02 if step % 40 or comm.rank else 0.6)
        comm.send(torch.full((3,), float(step)), (comm.rank + 1) % comm.size)
        received = comm.recv((comm.rank - 1) % comm.size, like=torch.ones(3)).wait()
        total = comm.all_reduce(torch.full((3,), comm.rank + step)).wait()
        expected = sum(range(comm.size)) + comm.size * step
        if total.tolist() != [expected] * 3 or received.tolist() != [step] * 3:
            return [step, total.tolist(), received.tolist()]
    return "right"
tell(counts)
"""
LOSES_RANK_0 = """
import os, sys, time, collshim
from collshim.transports.rendezvous.world import ProcessWorld
from tests.robustness.told import tell
meet = ProcessWorld.meet
def meet_and_lose(world, size):
    meet(world, size)
    time.sleep(0.3)  # the other rank has met it
    if world.rank == 0:
        os.kill(os.getpid(), int(sys.argv[1]))
    time.sleep(0.5)
ProcessWorld.meet = meet_and_lose
tell(collshim.current)
"""


@pytest.mark.parametrize(("number", "kind"), [(signal.SIGKILL, "PeerError"), (signal.SIGSTOP, "DeadlineError")])
def test_loss_of_the_store_at_the_last_step_of_making_a_world_is_told(number: int, kind: str) -> None:
    with ranks(LOSES_RANK_0, 2, int(number), COLLSHIM_TIMEOUT=str(TIMEOUT)) as processes:
        (found,) = read_reports(processes[1].ended(TIMEOUT + 3 * SLACK).out)
    assert (found.kind, "rank 0" in found.text) == (kind, True), found


@pytest.mark.parametrize("check", ["0", "1"])
def test_reducing_ranks_learn_that_the_store_stopped(check: str) -> None:
    variables = {"COLLSHIM_TIMEOUT": str(TIMEOUT), "COLLSHIM_CHECK": check}
    with ranks(CALLS + REDUCES_FOR_EVER, 3, **variables) as processes:
        assert all(process.stdout.readline().startswith("ready") for process in processes)
        stopped_at = time.monotonic()
        processes[0].stop()
        found = [process.ended(TIMEOUT + 3 * SLACK) for process in processes[1:]]
        took = time.monotonic() - stopped_at
    for seen in found:
        first, again = read_reports(seen.out)
        assert first.ours, seen
        assert "rank 0 " in first.text
        assert again.kind == "BrokenCommunicatorError"
        assert first.seconds + again.seconds < TIMEOUT + 2 * SLACK
        assert seen.code == 0, "it ends though the store says nothing"
    assert took < TIMEOUT + 3 * SLACK


def test_receiving_rank_learns_that_the_store_stopped() -> None:
    with ranks(CALLS + RECEIVES, 3, COLLSHIM_TIMEOUT=str(TIMEOUT)) as processes:
        assert all(process.stdout.readline().startswith("ready") for process in processes)
        processes[0].stop()
        (seen,) = read_reports(processes[1].ended(TIMEOUT + 3 * SLACK).out)
    assert seen.kind == "DeadlineError", seen
    assert "nothing was sent" in seen.text
    assert "rank 0 " in seen.text
    assert seen.seconds < TIMEOUT + SLACK


@pytest.mark.slow
def test_brief_stop_of_the_store_is_harmless() -> None:
    with ranks(CALLS + COUNTS, 3, COLLSHIM_TIMEOUT="15") as processes:
        assert all(process.stdout.readline().startswith("ready") for process in processes)
        for _ in range(2):
            processes[0].stop()
            time.sleep(1.2)  # longer than a store may take to answer
            processes[0].send_signal(signal.SIGCONT)
            time.sleep(0.3)
        found = await_ends(processes)
    assert [(seen.code, read_reports(seen.out)[0].value) for seen in found] == [(0, "right")] * 3, found


@pytest.mark.parametrize("deed", ["deletes", pytest.param("overwrites", marks=pytest.mark.slow)])
def test_tampered_store_keys_do_not_disturb_calls(deed: str) -> None:
    with ranks(CALLS + COUNTS, 3, COLLSHIM_TIMEOUT="10", COLLSHIM_SECRET="the world's own") as processes:
        ports = [process.stdout.readline().split()[1] for process in processes]
        with _stranger(int(ports[0]), deed) as keys:
            found = await_ends(processes)
    assert len(keys) > 3
    assert [(seen.code, read_reports(seen.out)[0].value) for seen in found] == [(0, "right")] * 3, found


@contextmanager
def _stranger(port: int, deed: str) -> Iterator[set[str]]:
    """Tamper with the store, knowing only the port, until the end; yield the keys that were found."""
    store = TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=5))
    keys, over = set[str](), threading.Event()

    def works() -> None:
        while not over.wait(0.05):
            try:
                for key in store.list_keys():
                    keys.add(key)
                    store.delete_key(key) if deed == "deletes" else store.set(key, "0" * 40)
            except DistNetworkError:
                return

    thread = threading.Thread(target=works, daemon=True)
    thread.start()
    try:
        yield keys
    finally:
        over.set()
        thread.join(10)


def test_silent_store_is_a_world_error() -> None:
    begun = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with pytest.raises(WorldError, match=r"^cannot connect to .*, served by rank 0 \(timed out after 0\.7 s\)"):
            reach_store("127.0.0.1", silent.getsockname()[1], timeout=0.7, server="rank 0")
        assert time.monotonic() - begun < 0.7 + SLACK


SERVES = """
import time
from datetime import timedelta
from torch.distributed import TCPStore
store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=5))
print(store.port, flush=True)
time.sleep(1000)
"""


def test_closed_client_leaves_no_waiting_thread() -> None:
    """An answer that came while the interpreter ends would abort the process."""
    with ranks(SERVES, 1) as (server,):
        client = StoreClient(reach_store("127.0.0.1", int(server.stdout.readline()), timeout=5.0), "it", "rank 0")
        client.set("key", "value", 5.0)
        server.stop()
        with pytest.raises(StoreSilentError):
            client.check("key")
        client.close()
        assert not client._thread.is_alive()


class SlowStore(Store):
    """A store that does not answer ``check`` until ``goes_on`` is set; ``asked`` are the requested keys."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = threading.Event()
        self.asked: list[str] = []

    def check(self, keys: list[str]) -> bool:
        self.asked += keys
        self.goes_on.wait(60)
        return False


@pytest.fixture
def slow_store() -> Iterator[SlowStore]:
    store = SlowStore()
    yield store
    store.goes_on.set()


def test_silent_store_times_out(slow_store: SlowStore) -> None:
    client, begun = StoreClient(slow_store, "world", "rank 0"), time.monotonic()
    with pytest.raises(StoreSilentError, match="rank 0"):
        client.check("first", seconds=0.7)
    assert 0.7 <= time.monotonic() - begun < 0.7 + SLACK
    assert client.silent_for > 0.35  # since its thread's request, which on a busy machine is later


def test_silent_store_is_not_asked_again(slow_store: SlowStore) -> None:
    client = StoreClient(slow_store, "world", "rank 0")
    with pytest.raises(StoreSilentError):
        client.check("first", seconds=0.7)
    for _ in range(50):
        with pytest.raises(StoreSilentError):
            client.check("second")
        client.post("third", "")
    slow_store.goes_on.set()
    limit = time.monotonic() + 5
    while client.silent_for:
        assert time.monotonic() < limit
        time.sleep(0.01)
    assert client.check("fourth") is False
    assert slow_store.asked == ["world/first", "world/fourth"]


def test_closed_client_does_not_wait_for_a_silent_store(slow_store: SlowStore) -> None:
    client = StoreClient(slow_store, "world", "rank 0")
    with pytest.raises(StoreSilentError):
        client.check("first", seconds=0.1)
    begun = time.monotonic()
    client.close()
    with pytest.raises(StoreSilentError):
        client.check("second")
    assert time.monotonic() - begun < SLACK


@contextmanager
def _clients(*secrets: bytes) -> Iterator[tuple[HashStore, list[StoreClient]]]:
    store = HashStore()
    clients = [StoreClient(store, "world", "rank 0", secret) for secret in secrets]
    try:
        yield store, clients
    finally:
        for client in clients:
            client.close()


def test_value_signed_with_another_secret_is_rejected() -> None:
    with _clients(b"the world's", b"the world's", b"a stranger's") as (_, (one, other, stranger)):
        one.set("waits/1", "left")
        stranger.set("waits/2", "left")
        assert other.get(["waits/1", "waits/2", "waits/3"]) == ["left", "", ""]
        assert stranger.get(["waits/1", "waits/2"]) == ["", "left"]


def test_value_signed_for_another_key_is_rejected() -> None:
    with _clients(b"the world's") as (store, (client,)):
        client.set("waits/1", "left")
        store.set("world/waits/2", store.get("world/waits/1").decode())
        assert client.get(["waits/1", "waits/2"]) == ["left", ""]


@pytest.mark.parametrize("before", ["", "a text that nobody signed", "é" * 40])
def test_stranger_cannot_write_the_first_word(before: str) -> None:
    with _clients(b"the world's") as (store, (client,)):
        if before:
            store.set("world/ended/all", before)
        assert client.first("ended/all", "own") == "own"
        assert client.first("ended/all", "second") == "own"
        assert client.first("ended/all", "third", expected="own") == "third"


def test_no_thread_is_left_without_a_listener() -> None:
    """Such a thread would be aborted with the process that ends then."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    before = {*threading.enumerate()}
    with pytest.raises(StoreSilentError, match=f"cannot connect to 127.0.0.1:{port}"):
        connect("127.0.0.1", port, 0.5)
    assert {*threading.enumerate()} <= before
