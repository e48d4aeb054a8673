"""This rank's world: a thread's, else the process's; made from the environment, split, left, made again."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import collshim
from collshim import WorldError
from collshim.world import LocalWorlds, local_worlds, peek, use
from tests.engine.scenarios import worlds_again
from tests.engine.worlds import TRANSPORTS, attempt, on_ranks

pytestmark = pytest.mark.processes

PROCESSES = TRANSPORTS[1:]


@pytest.fixture(autouse=True)
def _a_process_without_a_world(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TF_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    collshim.close()
    yield
    collshim.close()


def test_where_nothing_names_a_world_it_is_a_single_rank() -> None:
    assert peek() is None
    world = collshim.current()
    assert (world.rank, world.size, world.local_rank, world.local_size) == (0, 1, 0, 1)
    assert collshim.current() is world is peek()
    assert world.communicator.all_gather(np.array(7)).wait().tolist() == [7]


def test_a_world_that_was_left_is_made_again() -> None:
    first = collshim.current()
    collshim.close()
    assert peek() is None
    assert collshim.current() is not first


def test_a_second_world_is_refused() -> None:
    collshim.init(0, 1)
    with pytest.raises(WorldError, match=r"has a world already .*close it"):
        collshim.init(0, 1)


@pytest.mark.parametrize("given", [(0, None), (None, 2), (2, 2), (-1, 2)])
def test_arguments_that_contradict_themselves_make_no_world(given: tuple[Any, Any]) -> None:
    with pytest.raises(WorldError):
        collshim.init(*given, address="127.0.0.1", port=1)
    assert peek() is None


def test_half_an_environment_makes_no_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(WorldError, match="RANK=0"):
        collshim.current()
    assert peek() is None


def test_a_master_that_is_not_there_is_an_error_within_the_deadline() -> None:
    with pytest.raises(collshim.CollshimError):
        collshim.init(1, 2, address="127.0.0.1", port=1, timeout=1.0)
    assert peek() is None


def test_threads_speak_in_the_world_they_use() -> None:
    with local_worlds(2) as worlds:
        found: list[Any] = [None, None]

        def speak(rank: int) -> None:
            with use(worlds[rank]) as world:
                assert collshim.current() is world
                found[rank] = world.communicator.all_gather(np.array(rank)).wait().tolist()
            found[rank].append(peek())

        threads = [threading.Thread(target=speak, args=(rank,)) for rank in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert found == [[0, 1, None]] * 2


def test_worlds_may_be_used_within_each_other() -> None:
    with local_worlds(1) as outer, local_worlds(1) as inner, use(outer[0]):
        with use(inner[0]):
            assert collshim.current() is inner[0]
        assert collshim.current() is outer[0]


def test_a_thread_without_a_world_is_refused_while_ranks_are_threads() -> None:
    with local_worlds(1), pytest.raises(WorldError, match="is no rank: ranks of this process are threads"):
        collshim.current()
    assert collshim.current().size == 1


def test_a_process_of_thread_ranks_is_no_rank_of_another_world() -> None:
    with local_worlds(1), pytest.raises(WorldError):
        collshim.init(0, 1)


@pytest.mark.parametrize("size", [0, -1])
def test_a_world_has_a_rank(size: int) -> None:
    with pytest.raises(WorldError, match=f"size of a world is {size}, should be at least 1"):
        LocalWorlds(size)


def test_who_waits_in_a_world_that_ends_is_told() -> None:
    worlds = local_worlds(2)
    found: list[Any] = []
    waiting = worlds[0].communicator.barrier()
    thread = threading.Thread(target=lambda: found.append(attempt(waiting.wait)))
    thread.start()
    worlds.close()
    worlds.close()
    thread.join(20)
    assert "CommunicationError" in found[0].raised


def test_a_rank_that_leaves_is_told_to_those_who_wait_for_it() -> None:
    with local_worlds(2) as worlds:
        waiting = worlds[0].communicator.barrier()
        worlds.leave(1, "went fishing")
        with pytest.raises(collshim.PeerError, match="rank 1 went fishing"):
            waiting.wait(5)
        assert worlds.where(1) == "went fishing"


def test_worlds_of_threads_are_counted_by_what_is_open() -> None:
    """An exception on the way does not leave a world behind."""
    with pytest.raises(KeyError), local_worlds(2):
        raise KeyError
    assert collshim.current().size == 1


@pytest.mark.parametrize("transport", PROCESSES)
def test_processes_may_leave_their_world_and_make_another(transport: str) -> None:
    assert on_ranks(worlds_again.again, 2, transport) == [(3, True, 3)] * 2


@pytest.mark.parametrize("transport", PROCESSES)
def test_worlds_of_threads_in_between_do_not_count(transport: str) -> None:
    assert on_ranks(worlds_again.again_after_a_world_of_threads, 3, transport) == [6] * 3


def test_a_process_has_one_world() -> None:
    assert on_ranks(worlds_again.twice, 2, "processes") == [("WorldError", True, 3)] * 2


def test_an_argument_that_contradicts_the_launcher_is_refused() -> None:
    assert on_ranks(worlds_again.contradicted, 2, "processes") == [("WorldError", True, 3)] * 2


def test_a_world_that_was_left_refuses_calls(transport: str) -> None:
    broken = "BrokenCommunicatorError"
    assert on_ranks(worlds_again.closed, 2, transport) == [(broken, (broken,))] * 2


def test_a_part_of_a_world_is_a_world(transport: str) -> None:
    found = on_ranks(worlds_again.split, 3, transport)
    assert [part[0] for part in (found[2], found[0])] == [(rank, 2, rank, 2, (0, 1)) for rank in range(2)]
    assert found[1] is None
    assert [part[1:] for part in (found[0], found[2])] == [(3, {}, 7.5, True)] * 2


@pytest.mark.parametrize("transport", PROCESSES)
def test_every_thread_of_a_process_speaks_in_its_world(transport: str) -> None:
    assert on_ranks(worlds_again.strange_thread, 2, transport) == [[3]] * 2


def test_state_is_a_ranks_own(transport: str) -> None:
    wanted = [({"rank": rank}, f"<World: rank {rank} of 2>", True) for rank in range(2)]
    assert on_ranks(worlds_again.state, 2, transport) == wanted
