"""A world of one rank: results are available at once, in memory of their own or in place; failures are as usual."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import collshim
from collshim import Communicator, errors
from tests.engine.worlds import world

Ask = Callable[[Communicator, Any, Any], collshim.Work[Any]]

ASKED: dict[str, tuple[Ask, tuple[int, ...], tuple[int, ...]]] = {
    "all_reduce": (lambda comm, array, out: comm.all_reduce(array, out=out), (3, 2), (3, 2)),
    "broadcast": (lambda comm, array, out: comm.broadcast(array, out=out), (3, 2), (3, 2)),
    "all_gather": (lambda comm, array, out: comm.all_gather(array, out=out), (3, 2), (1, 3, 2)),
    "reduce_scatter": (lambda comm, array, out: comm.reduce_scatter(array, out=out), (1, 3, 2), (3, 2)),
    "all_to_all": (lambda comm, array, out: comm.all_to_all(array, out=out), (1, 3, 2), (1, 3, 2)),
}
"""The call, and the shapes of its input and result."""

KINDS: dict[str, Callable[[tuple[int, ...]], Any]] = {
    "torch": lambda shape: torch.arange(6.0).reshape(shape),
    "NumPy": lambda shape: np.arange(6.0).reshape(shape),
}


@pytest.fixture
def comm() -> Iterator[Communicator]:
    collshim.close()
    yield world()
    collshim.close()


@pytest.mark.parametrize("op", ASKED)
@pytest.mark.parametrize("kind", KINDS)
def test_result_has_the_input_kind_and_own_memory(comm: Communicator, kind: str, op: str) -> None:
    ask, shape, wanted = ASKED[op]
    given = KINDS[kind](shape)
    found = ask(comm, given, None).wait()
    given[...] = -1
    assert type(found) is type(given)
    assert (tuple(found.shape), np.asarray(found).ravel().tolist()) == (wanted, list(range(6)))


@pytest.mark.parametrize("op", ASKED)
@pytest.mark.parametrize("kind", KINDS)
def test_result_is_written_to_out(comm: Communicator, kind: str, op: str) -> None:
    ask, shape, wanted = ASKED[op]
    out = KINDS[kind](wanted)
    out[...] = -1
    assert ask(comm, KINDS[kind](shape), out).wait() is out
    assert np.asarray(out).ravel().tolist() == list(range(6))


@pytest.mark.parametrize("op", ["all_reduce", "broadcast"])
@pytest.mark.parametrize("kind", KINDS)
def test_call_in_place_returns_the_array(comm: Communicator, kind: str, op: str) -> None:
    ask, shape, _ = ASKED[op]
    given = KINDS[kind](shape)
    assert ask(comm, given, given).wait() is given
    assert np.asarray(given).ravel().tolist() == list(range(6))


@pytest.mark.parametrize("op", ["all_gather", "reduce_scatter", "all_to_all"])
def test_output_overlapping_the_input_is_filled(comm: Communicator, op: str) -> None:
    ask, shape, wanted = ASKED[op]
    memory = torch.arange(8.0)
    given, out = memory[:6].view(shape), memory[2:].view(wanted)
    assert ask(comm, given, out).wait() is out
    assert out.flatten().tolist() == list(range(6))


@pytest.mark.parametrize("op", ASKED)
def test_work_is_done_and_views_its_result(comm: Communicator, op: str) -> None:
    ask, shape, _ = ASKED[op]
    work = ask(comm, KINDS["NumPy"](shape), None)
    assert (work.done(), work.exception()) == (True, None)
    assert work.then(torch.sum).wait() == 15.0
    with pytest.raises(errors.ArgumentError, match="timeout is -1"):
        work.wait(-1)


@pytest.mark.parametrize("op", ASKED)
def test_failure_ends_the_group(comm: Communicator, op: str) -> None:
    ask, shape, _ = ASKED[op]
    with pytest.raises(errors.CommunicationError):
        comm.recv(0, out=torch.zeros(1)).wait(0.01)
    with pytest.raises(errors.BrokenCommunicatorError):
        ask(comm, KINDS["torch"](shape), None)


@pytest.mark.parametrize("op", ASKED)
def test_closed_communicator_refuses_calls(comm: Communicator, op: str) -> None:
    ask, shape, _ = ASKED[op]
    comm.close()
    with pytest.raises(errors.BrokenCommunicatorError, match="destroyed"):
        ask(comm, KINDS["torch"](shape), None)
