"""``launch``: results in rank order, the first failure, deadlines; ranks as threads and as processes."""

from __future__ import annotations

import gc
import multiprocessing
import os
import re
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import collshim
from collshim.launching.kinds import RANK_KINDS
from tests.engine.scenarios import deaths
from tests.engine.worlds import CHECKED, TRANSPORTS, on_ranks, world
from tests.robustness.scripts import Ended, finish, start_program

pytestmark = pytest.mark.processes

_OF_A_PEER = ("PeerError", "BrokenCommunicatorError")
"""The first rank that notices a lost peer gets the one, later ones the other."""


def place() -> Any:
    world = collshim.current()
    return world.rank, world.size, world.local_rank, world.local_size, world.communicator.ranks


def added(one: int, *, two: int = 0) -> int:
    return 100 * world().rank + one + two


def variables_here() -> Any:
    return os.environ.get("GREETING"), os.environ.get("OMITTED"), os.environ["RANK"]


def test_ranks_have_the_environment_of_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMITTED", "once")
    collshim.launch(
        place, 1, ranks="processes", timeout=200
    )  # the server that forks ranks runs from now on at the latest
    monkeypatch.setenv("GREETING", "hello")
    monkeypatch.delenv("OMITTED")
    found = collshim.launch(variables_here, 2, ranks="processes", timeout=200)
    assert found == [("hello", None, "0"), ("hello", None, "1")]


def options_here() -> Any:
    return collshim.options.__name__, world().timeout, collshim.Options.__name__, _chosen()


def _chosen() -> str:
    from collshim.settings import of_adapter

    return of_adapter("mindspore_gather")


def processes_in_a_process() -> Any:
    return collshim.launch(place, 2, ranks="processes", timeout=200)


def threads_in_a_rank() -> Any:
    """Start a world of threads from a rank; then use the rank's own world again."""
    inner = collshim.launch(place, 3, timeout=200)
    return inner, int(world().all_reduce(np.array(1)).wait())


def where() -> Any:
    return os.getpid(), threading.current_thread().name


def environment() -> Any:
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR")
    return [os.environ[name] for name in names]


def loaded_here() -> list[str]:
    """Return the engine's modules that garbage collections traverse, as loaded by this process itself."""
    collshim.current().communicator.barrier().wait()
    looked_at = {*map(id, gc.get_objects())}
    own = [name for name, module in sys.modules.items() if id(vars(module)) in looked_at]
    of_suite = ("collshim.conformance", "collshim.frameworks", "collshim.launching.kinds")  # loaded by this file
    return [name for name in own if name.startswith("collshim") and not name.startswith(of_suite)]


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("ranks", RANK_KINDS)
def test_every_rank_runs_in_its_own_world(ranks: str, size: int) -> None:
    wanted = [(rank, size, rank, size, tuple(range(size))) for rank in range(size)]
    assert collshim.launch(place, size, ranks=ranks, timeout=200) == wanted


@pytest.mark.parametrize("ranks", RANK_KINDS)
def test_arguments_are_shared_and_results_ordered(ranks: str) -> None:
    assert collshim.launch(added, 3, ranks=ranks, args=(7,), timeout=200) == [7, 107, 207]


def test_threads_can_run_any_function() -> None:
    seen: list[int] = []
    collshim.launch(lambda: seen.append(world().rank), 3, timeout=200)
    assert sorted(seen) == [0, 1, 2]


def test_threads_share_the_process_and_have_rank_names() -> None:
    assert collshim.launch(where, 2, timeout=200) == [(os.getpid(), f"rank {r} of 2") for r in range(2)]


def test_processes_are_separate() -> None:
    pids = {pid for pid, _ in collshim.launch(where, 2, ranks="processes", timeout=200)}
    assert len(pids | {os.getpid()}) == 3


def test_processes_inherit_the_package_outside_their_collections() -> None:
    assert collshim.launch(loaded_here, 2, ranks="processes", timeout=200) == [[], []]


def test_processes_get_a_launcher_environment() -> None:
    found = collshim.launch(environment, 2, ranks="processes", timeout=200)
    assert found == [[str(rank), "2", str(rank), "2", "127.0.0.1"] for rank in range(2)]


@pytest.mark.parametrize("ranks", RANK_KINDS)
def test_options_are_passed_to_the_ranks(ranks: str) -> None:
    with collshim.options(timeout=17.0, mindspore_gather="stacked"):
        found = collshim.launch(options_here, 2, ranks=ranks, timeout=200)
    assert [(timeout, gather) for _, timeout, _, gather in found] == [(17.0, "stacked")] * 2


def test_nested_thread_world_ends_before_the_outer_continues(transport: str) -> None:
    inner = [(rank, 3, rank, 3, (0, 1, 2)) for rank in range(3)]
    assert on_ranks(threads_in_a_rank, 2, transport) == [(inner, 2)] * 2


@pytest.mark.parametrize("transport", [*RANK_KINDS, pytest.param("unchecked", marks=pytest.mark.slow)])
def test_processes_can_be_launched_in_a_rank(transport: str) -> None:
    wanted = [(rank, 2, rank, 2, (0, 1)) for rank in range(2)]
    assert on_ranks(processes_in_a_process, 2, transport) == [wanted] * 2


def test_two_thread_worlds_are_isolated() -> None:
    def summed(offset: int) -> Any:
        comm = world()
        return [int(comm.all_reduce(np.array(offset + index)).wait()) for index in range(50)]

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(collshim.launch, summed, 3, args=(0,), timeout=20)
        two = pool.submit(collshim.launch, summed, 2, args=(1000,), timeout=20)
        assert one.result() == [[3 * index for index in range(50)]] * 3
        assert two.result() == [[2 * (1000 + index) for index in range(50)]] * 2


@pytest.mark.parametrize("size", [0, -1, 2.0, True, "2", None])
def test_launch_rejects_invalid_size(size: Any) -> None:
    with pytest.raises(collshim.ArgumentError, match=r"launch: size is .*, should be an int of at least 1"):
        collshim.launch(place, size)


def test_launch_rejects_unknown_ranks() -> None:
    with pytest.raises(collshim.ArgumentValueError, match="launch: ranks is 'fibres', should be \"threads\" or"):
        collshim.launch(place, 2, ranks="fibres")


@pytest.mark.parametrize("ranks", RANK_KINDS)
@pytest.mark.parametrize("timeout", ["x", -1, float("nan"), True, [1.0]])
def test_launch_rejects_invalid_timeout(ranks: str, timeout: Any) -> None:
    with pytest.raises(collshim.ArgumentError, match=r"launch: timeout is .*, should be a number of seconds from 0"):
        collshim.launch(place, 2, ranks=ranks, timeout=timeout)


@pytest.mark.parametrize("ranks", RANK_KINDS)
@pytest.mark.parametrize("timeout", [float("inf"), 1e300])
def test_timeout_can_be_far_away(ranks: str, timeout: float) -> None:
    assert collshim.launch(added, 2, ranks=ranks, args=(7,), timeout=timeout) == [7, 107]


INHERITED = {
    "a task of Slurm": {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_NNODES": "1"},
    "a rank of mpirun": {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"},
    "a rank of collshim run": {"RANK": "0", "WORLD_SIZE": "1", "RANK_ID": "0", "RANK_SIZE": "1", "MS_NODE_ID": "0"},
    "a worker of TensorFlow": {"TF_CONFIG": '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}'},
}
LAUNCHES = """
import os, collshim
from tests.engine.test_launch import INHERITED, place
if __name__ == "__main__":
    for inherited in INHERITED.values():
        os.environ.update(inherited)
        print([found[:2] for found in collshim.launch(place, 2, ranks="processes", timeout=30)])
        for name in inherited:
            del os.environ[name]
"""


@cache
def _launched() -> Ended:
    """Launch one after the other; the ranks' server inherits from the first."""
    return finish(start_program(LAUNCHES, **next(iter(INHERITED.values()))))


@pytest.mark.parametrize("inherited", INHERITED)
def test_launch_overrides_an_outer_launcher(inherited: str) -> None:
    seen = _launched()
    assert seen.out.splitlines()[[*INHERITED].index(inherited)] == "[(0, 2), (1, 2)]", seen


def test_function_missing_in_the_process_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)  # which would send its code
    deaths.raises.__module__, kept = "no_such_module", deaths.raises.__module__
    try:
        with pytest.raises(collshim.CollshimError, match=r"no_such_module|cannot be sent"):
            collshim.launch(deaths.raises, 2, ranks="processes", timeout=200)
    finally:
        deaths.raises.__module__ = kept


@pytest.mark.parametrize("name", ["raises", "raises_while_others_wait_for_messages", "raises_while_others_compute"])
def test_rank_that_raises_is_named_with_its_traceback(transport: str, name: str) -> None:
    with pytest.raises(collshim.RankError) as caught:
        on_ranks(getattr(deaths, name), 3, transport, within=30)
    assert (caught.value.rank, type(caught.value.exception)) == (1, deaths.OnPurposeError)
    assert caught.value.__cause__ is caught.value.exception
    assert str(caught.value) == "rank 1 of 3 failed: OnPurposeError: on purpose"


def test_failing_line_is_shown_once(transport: str) -> None:
    with pytest.raises(collshim.RankError) as caught:
        on_ranks(deaths.raises, 3, transport, within=30)
    shown = "".join(traceback.format_exception(caught.value))
    assert shown.count('raise OnPurposeError("on purpose")') == 1


def test_unpicklable_exception_is_reported_as_text(transport: str) -> None:
    with pytest.raises(collshim.RankError, match="rank 1 of 3 failed: Unpicklable: 4 and 2") as caught:
        on_ranks(deaths.raises_what_cannot_travel, 3, transport, within=30)
    assert "raise Unpicklable(4, 2)" in "".join(traceback.format_exception(caught.value))


def test_first_of_two_failures_is_raised(transport: str) -> None:
    with pytest.raises(collshim.RankError, match="rank 1 of 3 failed: OnPurposeError: on rank 1"):
        on_ranks(deaths.two_raise, 3, transport, within=30)


def test_rank_that_exits_is_a_failure(transport: str) -> None:
    with pytest.raises(collshim.RankError, match="rank 1 of 3 failed: SystemExit: 7") as caught:
        on_ranks(deaths.exits, 3, transport, within=30)
    assert caught.value.rank == 1


@pytest.mark.parametrize(
    ("name", "code"), [("ends_at_once", 7), ("is_killed", -9), ("is_killed_while_others_compute", -9)]
)
@pytest.mark.parametrize("transport", TRANSPORTS[1:])
def test_dead_process_is_named_with_its_exit_code(transport: str, name: str, code: int) -> None:
    with pytest.raises(collshim.RankError) as caught:
        on_ranks(getattr(deaths, name), 3, transport, within=20)
    assert (caught.value.rank, caught.value.exception) == (1, None)
    assert f"rank 1 of 3 ended without a result, exit code {code}" in str(caught.value)


def test_dead_process_is_the_first_failure() -> None:
    with pytest.raises(collshim.RankError, match="rank 1 of 3 ended without a result, exit code 7"):
        collshim.launch(deaths.dies_while_others_wait, 3, ranks="processes", timeout=200)


@pytest.mark.parametrize("ranks", RANK_KINDS)
def test_exception_without_text_is_named_with_its_rank(ranks: str) -> None:
    with pytest.raises(collshim.RankError, match="rank 1 of 2 failed: NoTextError: ") as caught:
        collshim.launch(deaths.raises_without_a_text, 2, ranks=ranks, timeout=200)
    assert caught.value.rank == 1


def test_returned_rank_is_named_to_waiting_ranks(transport: str) -> None:
    found = on_ranks(deaths.returns_early, 3, transport, within=30)
    assert all(found[rank].raised[0] in _OF_A_PEER for rank in (0, 2)), found
    assert all("rank 1 has returned from its function" in found[rank].text for rank in (0, 2)), found


@pytest.mark.parametrize("transport", CHECKED)
def test_returned_rank_sends_no_message(transport: str) -> None:
    found = on_ranks(deaths.returns_early_from_messages, 2, transport, within=30)
    assert found[0].raised[0] == "PeerError", found
    assert "rank 1 has " in found[0].text


@pytest.mark.parametrize("transport", CHECKED)
def test_send_fails_when_all_others_returned(transport: str) -> None:
    found = on_ranks(_nobody_sends, 2, transport, within=30)
    assert found[0] == "PeerError"


def _nobody_sends() -> Any:
    from tests.engine.worlds import attempt

    comm = world()
    return attempt(lambda: comm.recv(None, like=torch.ones(3)).wait()).raised[0] if comm.rank == 0 else None


def test_message_sent_before_returning_arrives(transport: str) -> None:
    assert on_ranks(deaths.sends_and_returns, 2, transport, within=30) == [[0, 1, 2], None]


def test_call_started_before_returning_completes(transport: str) -> None:
    assert on_ranks(deaths.starts_and_returns, 3, transport, within=30) == [9000.0, None, 9000.0]


def test_peer_learns_what_the_failed_rank_raised() -> None:
    deaths.HEARD.clear()
    with pytest.raises(collshim.RankError, match="rank 1 of 3 failed: OnPurposeError"):
        on_ranks(deaths.peers_die_one_after_the_other, 3, "threads", within=30)
    assert sorted(rank for rank, _ in deaths.HEARD) == [0, 2]
    assert all(heard.raised[0] in _OF_A_PEER for _, heard in deaths.HEARD)
    assert all("rank 1 failed with OnPurposeError: on purpose" in heard.text for _, heard in deaths.HEARD)


def test_unpicklable_result_is_reported() -> None:
    with pytest.raises(collshim.RankError, match="its return value, a function, cannot be sent"):
        collshim.launch(deaths.returns_a_lambda, 2, ranks="processes", timeout=200)


def test_unreadable_result_is_reported_with_its_rank() -> None:
    with pytest.raises(
        collshim.RankError, match=r"rank 1 of 2: its return value cannot be read .*: OnPurposeError"
    ) as caught:
        collshim.launch(deaths.returns_what_its_process_alone_reads, 2, ranks="processes", timeout=200)
    assert caught.value.rank == 1


def test_unreadable_exception_is_reported_as_text() -> None:
    with pytest.raises(collshim.RankError, match="rank 1 of 2 failed: OfOneProcess: 4") as caught:
        collshim.launch(deaths.raises_what_its_process_alone_reads, 2, ranks="processes", timeout=200)
    assert caught.value.exception is None


@pytest.mark.parametrize(("ranks", "seconds"), [("threads", 1), ("processes", 5)])
def test_rank_that_does_not_return_is_named(ranks: str, seconds: int) -> None:
    """The others, including processes that start on a busy machine, must return within this time."""
    with pytest.raises(collshim.RankError, match=rf"rank 1.* has not returned.*within {seconds} s") as caught:
        collshim.launch(deaths.stays, 2, ranks=ranks, timeout=seconds)
    assert caught.value.rank == 1


@pytest.mark.parametrize("ranks", RANK_KINDS)
def test_rank_waiting_at_the_deadline_is_named_too(ranks: str) -> None:
    with pytest.raises(collshim.RankError) as caught:
        collshim.launch(deaths.waits_for_one_that_stays, 2, ranks=ranks, timeout=2)
    doing = {
        "threads": "waits in all_reduce",
        "processes": r"was interrupted at deaths.py:\d+; its last call was all_reduce",
    }
    assert re.search(f"rank 0 has not returned: it {doing[ranks]}", str(caught.value))
    assert caught.value.late.keys() == {0, 1}


def test_process_that_ignores_an_interrupt_ends_too() -> None:
    with pytest.raises(collshim.RankError) as caught:
        collshim.launch(deaths.stays_when_interrupted, 2, ranks="processes", timeout=5)
    expected = "launch: rank 1 has not returned: it does not say where it is (within 5 s)"
    assert str(caught.value) == expected
    assert not multiprocessing.active_children()


def test_nothing_is_left_behind() -> None:
    """No process, no thread that waits in a collective, no world."""
    with pytest.raises(collshim.RankError):
        on_ranks(deaths.is_killed, 3, "processes", within=30)
    with pytest.raises(collshim.RankError):
        on_ranks(deaths.raises, 3, "threads", within=30)
    limit = time.monotonic() + 10
    while _left() and time.monotonic() < limit:
        time.sleep(0.05)
    assert _left() == []
    assert collshim.launch(place, 1, timeout=200)[0][:2] == (0, 1)


def _left() -> list[str]:
    threads = [thread.name for thread in threading.enumerate() if thread.name.startswith("rank ")]
    children = [child.name for child in multiprocessing.active_children() if child.name.startswith("rank ")]
    return [name for name in threads + children if "of 3" in name]
