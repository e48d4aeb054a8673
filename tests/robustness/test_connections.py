"""Messages over connections of their own: strangers, senders that end, and many at once."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable

import pytest

from collshim.launching.kinds import RANK_KINDS
from collshim.transports.sockets.connection import HELLO, MESSAGE, encode
from tests.engine.worlds import on_ranks
from tests.robustness.scenarios import mail
from tests.robustness.scripts import await_ends, ranks
from tests.robustness.told import read_reports

TRANSPORTS = (*RANK_KINDS, "unchecked")
BEGINS = """
import os, sys, time, torch, collshim
from tests.robustness.told import tell
comm = collshim.current().communicator
comm.barrier().wait()
"""
EXCHANGES = """
print("port", comm._transport.world.connections.port, flush=True)
def exchanges():
    for step in range(100):
        length, peer = (3, 5000, 200_000)[step % 3], 1 - comm.rank
        sent = comm.send(torch.full((length,), float(step)), peer)
        received = comm.recv(peer, like=torch.zeros(length)).wait()
        sent.wait()
        if not bool((received == step).all()):
            return [step, received[:3].tolist()]
        time.sleep(0.01)
    return "right"
tell(exchanges)
sys.stdin.read()
"""
DIES_SENDING = """
from collshim.transports.sockets.connection import Connection
if comm.rank == 1:
    flush = Connection.flush
    def dies(connection):
        long = [each for each in connection._outgoing if each.data.nbytes > 10**6]
        for each in long:
            each.data = each.data[:10**5]  # where the other end reads as fast as this one writes, all would go at once
        flush(connection)
        if long:
            os._exit(9)
    Connection.flush = dies
    comm.send(torch.ones(10**7), 0).wait()
if comm.rank == 2:
    sys.stdin.read()
if comm.rank == 0:
    from collshim.transports.rendezvous import world as rendezvous
    rendezvous.LEAVE_SECONDS = 0.5  # nobody knows that rank 1 will not come to take its leave
    tell(lambda: comm.recv({source}, like=torch.zeros(10**7)).wait())
"""
SENDS_AND_ENDS = """
if comm.rank == 1:
    for tag, length in enumerate({lengths}):
        comm.send(torch.full((length,), tag + 1.0), 0, tag=tag)
else:
    while not collshim.world._Process.shared.stalls.any_left([1]):
        time.sleep(0.05)
    time.sleep(0.5)
    tell(lambda: [sorted(set(comm.recv({source}, tag=tag, like=torch.zeros(length)).wait().tolist()))
                  for tag, length in reversed([*enumerate({lengths})])])
"""


def _garbage(port: int) -> bytes:
    return os.urandom(400)


def _no_message(port: int) -> bytes:
    return encode(HELLO, b"\xff" * 40) + b"\xff" * 10_000


def _message_without_hello(port: int) -> bytes:
    return encode(MESSAGE, b"[]", group=1, nbytes=4) + b"1234"


def _hello_of_a_stranger(port: int) -> bytes:
    return encode(HELLO, struct.pack("<II", 1, 0) + bytes(32))


def _endless_header(port: int) -> bytes:
    return struct.pack("<BxxxIQQQQ", HELLO, 2**32 - 1, 0, 0, 2**63, 0)


def _too_long_hello(port: int) -> bytes:
    return struct.pack("<BxxxIQQQQ", HELLO, 60_000, 0, 0, 0, 0)


STRANGERS: dict[str, Callable[[int], bytes]] = {
    "garbage": _garbage,
    "a hello that is none": _no_message,
    "a message without a hello": _message_without_hello,
    "a hello that is not signed": _hello_of_a_stranger,
    "a header without an end": _endless_header,
    "a hello that is too long": _too_long_hello,
}


@pytest.mark.parametrize("says", STRANGERS.values(), ids=STRANGERS)
def test_garbage_at_the_message_port_is_dropped(
    says: Callable[[int], bytes],
) -> None:
    with ranks(BEGINS + EXCHANGES, 2, COLLSHIM_SECRET="the world's own", COLLSHIM_TIMEOUT="20") as processes:
        ports = [int(process.stdout.readline().split()[1]) for process in processes]
        for _ in range(5):
            for port in ports:
                with socket.create_connection(("127.0.0.1", port), timeout=10) as stranger:
                    stranger.sendall(says(port))
                    assert _is_dropped(stranger)
        found = await_ends(processes[::-1])  # rank 0 serves the store, and leaves last
    assert [(seen.code, read_reports(seen.out)[0].value) for seen in found] == [(0, "right")] * 2, found
    assert not any("Traceback" in seen.errors for seen in found), found


def _is_dropped(stranger: socket.socket) -> bool:
    try:
        return stranger.recv(1) == b""
    except ConnectionResetError:  # before all its data was read
        return True


def test_silent_connections_change_nothing() -> None:
    with ranks(BEGINS + EXCHANGES, 2, COLLSHIM_SECRET="the world's own", COLLSHIM_TIMEOUT="20") as processes:
        ports = [int(process.stdout.readline().split()[1]) for process in processes]
        strangers = [socket.create_connection(("127.0.0.1", port), timeout=10) for port in ports for _ in range(100)]
        found = await_ends(processes[::-1])  # rank 0 serves the store, and leaves last
        dropped = [_is_dropped(stranger) for stranger in strangers]
        for stranger in strangers:
            stranger.close()
    assert all(dropped), "at the end of the world at the latest"
    assert [(seen.code, read_reports(seen.out)[0].value) for seen in found] == [(0, "right")] * 2, found


@pytest.mark.parametrize("check", ["0", "1"])
@pytest.mark.parametrize("source", [1, None])
def test_sender_dying_mid_message_is_a_peer_error(source: int | None, check: str) -> None:
    variables = {"COLLSHIM_TIMEOUT": "90", "COLLSHIM_CHECK": check, "COLLSHIM_TRANSPORT": "gloo"}
    with ranks(BEGINS + DIES_SENDING.format(source=source), 3, **variables) as processes:
        seen = processes[0].ended()
        died = processes[1].ended()
    assert died.code == 9, (died, seen)
    assert [one.kind for one in read_reports(seen.out)] == ["PeerError"], seen
    (failure,) = read_reports(seen.out)
    assert "rank 1 " in failure.text
    assert failure.seconds < 30


@pytest.mark.parametrize("check", ["0", "1"])
@pytest.mark.parametrize("source", [1, None])
def test_messages_of_an_ended_rank_arrive(source: int | None, check: str) -> None:
    lengths = (1, 100, 10_000, 3)
    script = BEGINS + SENDS_AND_ENDS.format(lengths=lengths, source=source)
    with ranks(script, 2, COLLSHIM_CHECK=check, COLLSHIM_TIMEOUT="10") as processes:
        found = await_ends(processes)
    assert [seen.code for seen in found] == [0, 0], found
    assert read_reports(found[0].out)[0].value == [[4.0], [3.0], [2.0], [1.0]], found


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_tagged_messages_arrive_in_any_order(transport: str, seed: int) -> None:
    assert on_ranks(mail.receives_in_another_order, 3, transport, seed, wait=20.0, within=60) == [[], [], []]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_two_receiving_threads_get_their_own_messages(transport: str) -> None:
    found = on_ranks(mail.two_threads_receive, 2, transport, wait=20.0, within=60)[0]
    assert found == [[float(n) for n in range(mail.FOR_EACH)], [1000.0 + n for n in range(mail.FOR_EACH)]]
