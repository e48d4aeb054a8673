"""Sends and receives on CUDA: batches with the check on and off, refusals, and failures halfway."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from collshim import Communicator, Recv, Send
from tests.cuda_model import model
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import Setting, among_gpus, device, ones, values
from tests.engine.worlds import attempt

require_model()


def exchanged(comm: Communicator) -> list[list[float]]:
    """Let every rank send to every rank, itself too, twice; and a CPU tensor to the next one."""
    x, found = ones() * (comm.rank + 1), list[Any]()
    for _ in range(2):
        sends = [Send(x, rank) for rank in range(comm.size)]
        receives = [Recv(rank, like=x) for rank in range(comm.size)]
        after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        on_cpu: list[Send | Recv] = [Send(torch.ones(2), after), Recv(before, like=torch.ones(2))]
        works = comm.batch([*sends, *on_cpu, *receives])
        found.append([work.wait() for work in works][comm.size + 2 :])
    return [[tensor[0].item() for tensor in turn] for turn in found]


@pytest.mark.parametrize("checks", [False, True], ids=["unchecked", "checked"])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_batch_forms_an_all_to_all(size: int, checks: bool) -> None:
    wanted = [[float(rank + 1) for rank in range(size)]] * 2
    assert values(among_gpus(exchanged, size, setting=Setting(checks=checks))) == [wanted] * size


def on_both(comm: Communicator) -> list[list[float]]:
    """Make a batch of CPU tensors, and an equal one on a GPU."""
    found = list[list[float]]()
    for place in (torch.device("cpu"), device()) * 2:
        x = torch.full((4,), comm.rank + 1.0, device=place)
        into = torch.zeros(4, device=place)
        works = comm.batch([Send(x, 1 - comm.rank), Recv(1 - comm.rank, out=into)])
        found.append([work.wait() for work in works][1].tolist())
    return found


@pytest.mark.parametrize("checks", [False, True], ids=["unchecked", "checked"])
def test_earlier_cpu_batch_does_not_validate_gpu_tensors(checks: bool) -> None:
    assert values(among_gpus(on_both, 2, setting=Setting(checks=checks))) == [[[2.0] * 4] * 4, [[1.0] * 4] * 4]


def in_turns(comm: Communicator) -> list[float]:
    """Exchange single messages, with collectives in between."""
    found = list[float]()
    for turn in range(3):
        if comm.rank == 0:
            comm.send(ones() * turn, 1).wait()
        else:
            found.append(comm.recv(0, like=ones()).wait()[0].item())
        found.append(comm.all_reduce(ones()).wait()[0].item())
    return found


@pytest.mark.parametrize("checks", [False, True, None], ids=["unchecked", "checked", "by device"])
def test_single_messages(checks: bool | None) -> None:
    assert values(among_gpus(in_turns, 2, setting=Setting(checks=checks)))[1] == [0, 2, 1, 2, 2, 2]


REFUSED: dict[str, Any] = {
    "a tag": lambda x: [Send(x, 1), Send(x, 1, tag=3)],
    "any source": lambda x: [Send(x, 1), Recv(None, like=x)],
    "an unknown shape": lambda x: [Send(x, 1), Recv(1)],
    "a shape to discover": lambda x: [Send(x, 1), Recv(1, like=x, discovers=True)],
}


def refused(comm: Communicator, name: str) -> tuple[str, int, float]:
    comm.all_reduce(ones()).wait()
    torch.cuda.synchronize()
    comm.barrier().wait()
    if comm.rank == 0:
        model.clear()
    error = attempt(lambda: comm.batch(REFUSED[name](ones()))) if comm.rank == 0 else None
    launches = model.count("launches")
    comm.barrier().wait()
    return "" if error is None else error.raised[0], launches, comm.all_reduce(ones()).wait()[0].item()


@pytest.mark.parametrize("checks", [False, True], ids=["unchecked", "checked"])
@pytest.mark.parametrize("name", REFUSED)
def test_refused_batch_sends_nothing(name: str, checks: bool) -> None:
    found = values(among_gpus(refused, 2, name, setting=Setting(checks=checks)))
    assert found[0] == ("ArgumentValueError", 0, 2.0)


def failing(comm: Communicator) -> tuple[str, str]:
    """Let torch refuse a message of the batch on rank 0."""
    comm.all_reduce(ones()).wait()
    torch.cuda.synchronize()
    transport: Any = comm._transport
    if comm.rank == 0:
        transport.gpu_port = _Failing(transport.connected_gpu_port())
    works = comm.batch([Send(ones(), 1 - comm.rank), Recv(1 - comm.rank, like=ones())])
    first = attempt(lambda: [work.wait() for work in works])
    torch.cuda.synchronize()
    found = attempt(lambda: comm.all_reduce(torch.full((4,), 5.0, device=device())).wait())
    return first.text, found.text


class _Failing:
    """A port that fails at the second message."""

    def __init__(self, port: Any) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def recv(self, *given: Any) -> Any:
        raise RuntimeError("out of memory, say")


def test_call_after_a_failed_batch_reports_it() -> None:
    found = values(among_gpus(failing, 2, setting=Setting(wait=10.0, rests=False)))
    assert "out of memory, say" in found[0][0]
    assert [later for _, later in found if "out of memory, say" not in later] == []
