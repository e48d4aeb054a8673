"""The calls that ranks compare by default: those on CPU tensors, and not those on CUDA tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.distributed import HashStore

from collshim import Communicator
from collshim.joining import _checks
from collshim.transports.processes.transport import ProcessTransport
from collshim.transports.rendezvous.world import ProcessWorld
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import Setting, among_gpus, device, values
from tests.engine.worlds import attempt
from tests.gpu.scenarios import ALL, HOST_WAITS, given, results

require_model()

CHOSEN_BY_NOBODY = Setting(checks=None)


@pytest.mark.parametrize("in_use", [False, True])
def test_check_default_ignores_cuda_initialization(monkeypatch: pytest.MonkeyPatch, in_use: bool) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: in_use)
    world = ProcessWorld(HashStore(), 0, 5.0)
    assert _checks(world) is None
    world.close()


def on_gpus(comm: Communicator) -> None:
    x, parts = given(torch.float32, comm, device())
    for name in sorted(set(ALL) - HOST_WAITS - {"ring"}):
        results(ALL[name](comm, x, parts))


@pytest.mark.parametrize("checks", [None, True])
def test_hosts_exchange_nothing_for_cuda_tensors(monkeypatch: pytest.MonkeyPatch, checks: bool | None) -> None:
    compared = list[Any]()
    exchange = ProcessTransport._exchange_fingerprints

    def counted(transport: ProcessTransport, call: Any) -> None:
        compared.append(call)
        exchange(transport, call)

    monkeypatch.setattr(ProcessTransport, "_exchange_fingerprints", counted)
    values(among_gpus(on_gpus, 2, setting=Setting(checks=checks)))
    assert bool(compared) is (checks is True)


def disagreeing(comm: Communicator) -> list[Any]:
    length = 3 + comm.rank
    on_cpu = attempt(lambda: comm.all_reduce(torch.ones(length)).wait())
    before, on_gpu = comm.all_reduce(torch.ones(5000)), comm.all_reduce(torch.ones(4, device=device()))
    return [on_cpu.raised[0], on_gpu.wait().tolist(), before.wait()[0].item()]


def test_calls_on_cpu_tensors_are_compared() -> None:
    assert values(among_gpus(disagreeing, 2, setting=CHOSEN_BY_NOBODY)) == [["MismatchError", [2.0] * 4, 2.0]] * 2


def unknown(comm: Communicator) -> str:
    return attempt(lambda: comm.all_to_all([torch.ones(1 + rank, device=device()) for rank in range(2)])).text


def test_unknown_shapes_are_refused_on_cuda_only() -> None:
    assert all("discovers=True" in text for text in values(among_gpus(unknown, 2, setting=CHOSEN_BY_NOBODY)))


def test_subgroup_compares_the_same_calls() -> None:
    def part(comm: Communicator) -> tuple[bool, bool]:
        own = comm.subgroup([0, 1])
        assert own is not None
        return own.checks, own.checks_on_cuda

    assert values(among_gpus(part, 2, setting=CHOSEN_BY_NOBODY)) == [(True, False)] * 2
