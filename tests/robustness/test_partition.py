"""Two machines with a network that is cut, both ways or one: both ranks end with an error by the deadline."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.robustness.namespaces import Machines, machines, reason_against
from tests.robustness.scripts import environment
from tests.robustness.told import SLACK, read_reports

TIMEOUT = 3.0
REASON = reason_against() or ("" if shutil.which("nft") else "this system has no command `nft`")
BEGINS = """
import torch, collshim
from collshim.transports.rendezvous import world as rendezvous
from tests.robustness.told import tell
rendezvous.LEAVE_SECONDS = 0.5  # who is cut off cannot take its leave
comm = collshim.current().communicator
comm.barrier().wait()
print("ready", flush=True)
def calls():
    while True:
        {call}
tell(calls)
"""
CALLS = {
    "small reductions": "comm.all_reduce(torch.ones(3)).wait()",
    "large reductions": "comm.all_reduce(torch.ones(100_000)).wait()",
    "messages": "comm.send(torch.ones(9), 1 - comm.rank); comm.recv(1 - comm.rank, like=torch.ones(9)).wait()",
}
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(REASON), reason=REASON)]


@pytest.mark.parametrize("cut", [(0, 1), (1,)], ids=["both ways", "one way"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_network_partition_is_reported_by_the_deadline(call: str, cut: Sequence[int]) -> None:
    with machines(2) as net, _started(BEGINS.format(call=call), net) as processes:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for place in cut:
            _drop_all_that_comes_to(net, place)
        found = [process.communicate(timeout=TIMEOUT + 10 + 2 * SLACK) for process in processes]
    for out, errors in found:
        (seen,) = read_reports(out)
        assert seen.ours, (out, errors)
        assert seen.seconds < TIMEOUT + 1 + SLACK, (out, errors)  # from the last output before the cut
        assert seen.kind in ("DeadlineError", "PeerError")


@contextmanager
def _started(source: str, net: Machines) -> Iterator[list[subprocess.Popen[str]]]:
    """Start a rank on each machine, as a launcher does; kill them at the end."""
    processes = [_rank(source, net, place) for place in range(2)]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _rank(source: str, net: Machines, place: int) -> subprocess.Popen[str]:
    own = {"RANK": str(place), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    where = {"MASTER_ADDR": net.address(0), "MASTER_PORT": "29513", "COLLSHIM_TIMEOUT": str(TIMEOUT)}
    return subprocess.Popen(
        [*net.prefix(place), sys.executable, "-c", source],
        env=environment(**own, **where),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _drop_all_that_comes_to(net: Machines, place: int) -> None:
    rules = (
        "add table inet cut",
        "add chain inet cut coming { type filter hook input priority 0; }",
        f"add rule inet cut coming iifname cable{place} drop",
    )
    for rule in rules:
        subprocess.run(["ip", "netns", "exec", net.names[place], "nft", rule], check=True, timeout=200)
