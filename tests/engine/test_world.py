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


def test_default_world_is_a_single_rank() -> None:
    assert peek() is None
    world = collshim.current()
    assert (world.rank, world.size, world.local_rank, world.local_size) == (0, 1, 0, 1)
    assert collshim.current() is world is peek()
    assert world.communicator.all_gather(np.array(7)).wait().tolist() == [7]


def test_world_can_be_made_again_after_leaving() -> None:
    first = collshim.current()
    collshim.close()
    assert peek() is None
    assert collshim.current() is not first


def test_second_world_is_refused() -> None:
    collshim.init(0, 1)
    with pytest.raises(WorldError, match=r"already has a world .*close it"):
        collshim.init(0, 1)


@pytest.mark.parametrize("given", [(0, None), (None, 2), (2, 2), (-1, 2)])
def test_contradicting_arguments_make_no_world(given: tuple[Any, Any]) -> None:
    with pytest.raises(WorldError):
        collshim.init(*given, address="127.0.0.1", port=1)
    assert peek() is None


def test_incomplete_environment_makes_no_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(WorldError, match="RANK=0"):
        collshim.current()
    assert peek() is None


def test_missing_master_is_an_error_by_the_deadline() -> None:
    with pytest.raises(collshim.CollshimError):
        collshim.init(1, 2, address="127.0.0.1", port=1, timeout=1.0)
    assert peek() is None


def test_threads_use_their_current_world() -> None:
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


def test_worlds_can_be_nested() -> None:
    with local_worlds(1) as outer, local_worlds(1) as inner, use(outer[0]):
        with use(inner[0]):
            assert collshim.current() is inner[0]
        assert collshim.current() is outer[0]


def test_thread_without_a_world_is_refused() -> None:
    with local_worlds(1), pytest.raises(WorldError, match="is not a rank: ranks of this process are threads"):
        collshim.current()
    assert collshim.current().size == 1


def test_process_with_thread_ranks_cannot_init() -> None:
    with local_worlds(1), pytest.raises(WorldError):
        collshim.init(0, 1)


@pytest.mark.parametrize("size", [0, -1])
def test_world_has_a_rank(size: int) -> None:
    with pytest.raises(WorldError, match=f"size of a world is {size}, should be at least 1"):
        LocalWorlds(size)


def test_waiting_in_a_world_that_ends_fails() -> None:
    worlds = local_worlds(2)
    found: list[Any] = []
    waiting = worlds[0].communicator.barrier()
    thread = threading.Thread(target=lambda: found.append(attempt(waiting.wait)))
    thread.start()
    worlds.close()
    worlds.close()
    thread.join(20)
    assert "CommunicationError" in found[0].raised


def test_leaving_rank_is_reported_to_waiting_ranks() -> None:
    with local_worlds(2) as worlds:
        waiting = worlds[0].communicator.barrier()
        worlds.leave(1, "went fishing")
        with pytest.raises(collshim.PeerError, match="rank 1 went fishing"):
            waiting.wait(5)
        assert worlds.where(1) == "went fishing"


def test_thread_worlds_are_numbered_by_open_ones() -> None:
    """An exception in the block leaves no world behind."""
    with pytest.raises(KeyError), local_worlds(2):
        raise KeyError
    assert collshim.current().size == 1


@pytest.mark.parametrize("transport", PROCESSES)
def test_processes_can_leave_and_rejoin(transport: str) -> None:
    assert on_ranks(worlds_again.again, 2, transport) == [(3, True, 3)] * 2


@pytest.mark.parametrize("transport", PROCESSES)
def test_thread_worlds_in_between_do_not_count(transport: str) -> None:
    assert on_ranks(worlds_again.again_after_a_world_of_threads, 3, transport) == [6] * 3


def test_process_has_one_world() -> None:
    assert on_ranks(worlds_again.twice, 2, "processes") == [("WorldError", True, 3)] * 2


def test_argument_contradicting_the_launcher_is_refused() -> None:
    assert on_ranks(worlds_again.contradicted, 2, "processes") == [("WorldError", True, 3)] * 2


def test_left_world_refuses_calls(transport: str) -> None:
    broken = "BrokenCommunicatorError"
    assert on_ranks(worlds_again.closed, 2, transport) == [(broken, (broken,))] * 2


def test_part_of_a_world_is_a_world(transport: str) -> None:
    found = on_ranks(worlds_again.split, 3, transport)
    assert [part[0] for part in (found[2], found[0])] == [(rank, 2, rank, 2, (0, 1)) for rank in range(2)]
    assert found[1] is None
    assert [part[1:] for part in (found[0], found[2])] == [(3, {}, 7.5, True)] * 2


@pytest.mark.parametrize("transport", PROCESSES)
def test_every_thread_uses_the_world_of_its_process(transport: str) -> None:
    assert on_ranks(worlds_again.strange_thread, 2, transport) == [[3]] * 2


def test_state_belongs_to_the_rank(transport: str) -> None:
    wanted = [({"rank": rank}, f"<World: rank {rank} of 2>", True) for rank in range(2)]
    assert on_ranks(worlds_again.state, 2, transport) == wanted
