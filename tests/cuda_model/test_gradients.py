"""Backward through every collective, whether or not the ranks exchange who needs a gradient."""

from __future__ import annotations

import pytest
import torch

from collshim import Communicator
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import Setting, among_gpus, among_threads, device, values
from tests.cuda_model.scenarios import POSTS, differentiated

require_model()

pytestmark = pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream does not match:UserWarning")
"""torch's performance advice if the leaf and the call are on two streams."""


@pytest.mark.parametrize("checks", [False, True, None], ids=["unchecked", "checked", "by device"])
@pytest.mark.parametrize("name", POSTS)
@pytest.mark.parametrize("size", [2, 3])
def test_gradients_match_cpu_tensors(size: int, name: str, checks: bool | None) -> None:
    found = values(among_gpus(differentiated, size, name, "cuda", setting=Setting(checks=checks, wait=10.0)))
    assert found == among_threads(differentiated, size, name, "cpu")


def sent(comm: Communicator, kind: str) -> list[float] | None:
    x = torch.arange(1.0, 5.0, device=device() if kind == "cuda" else kind).requires_grad_()
    work = comm.send(x, 1) if comm.rank == 0 else comm.recv(0, like=x)
    y = work.wait()
    loss = work.token if y is None else (y**2).sum()
    assert loss is not None
    torch.autograd.backward([loss])
    return None if x.grad is None else x.grad.tolist()


@pytest.mark.parametrize("checks", [False, True, None], ids=["unchecked", "checked", "by device"])
def test_gradient_of_a_message_is_sent_back(checks: bool | None) -> None:
    found = values(among_gpus(sent, 2, "cuda", setting=Setting(checks=checks, wait=10.0)))
    assert found == [[2.0, 4.0, 6.0, 8.0], None]
