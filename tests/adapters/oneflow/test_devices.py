"""Names of GPUs on a machine without one: refused or, with the switch, the CPU, by every entry of the adapter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import collshim
import collshim.oneflow as flow
from tests.adapters.conftest import Run, each_of

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")

DOORS: dict[str, Callable[[], Any]] = {
    "tensor": lambda: flow.tensor([1], device="cuda"),
    "zeros": lambda: flow.zeros(2, device="cuda:0"),
    "arange": lambda: flow.arange(3, device=flow.device("cuda")),
    "a function of torch's": lambda: flow.randn(2, device="cuda"),
    "new_zeros": lambda: flow.ones(2).new_zeros(2, device="cuda"),
    "Tensor.to": lambda: flow.ones(2).to("cuda:1"),
    "Tensor.to by keyword": lambda: flow.ones(2).to(device="cuda", dtype=flow.float64),
    "Tensor.cuda": lambda: flow.ones(2).cuda(),
    "Tensor.cuda with a number": lambda: flow.ones(2).cuda(1),
    "a parameter": lambda: flow.nn.Parameter(flow.ones(2)).to("cuda"),
    "Module.to": lambda: flow.nn.Linear(2, 1).to("cuda").weight,
    "Module.cuda": lambda: flow.nn.Linear(2, 1).cuda().weight,
    "a module's device": lambda: flow.nn.Linear(2, 1, device="cuda").weight,
    "device": lambda: torch.zeros(1, device=flow.device("cuda", 1)),
    "Generator": lambda: flow.Generator("cuda"),
    "placement": lambda: torch.zeros(len(flow.placement("cuda", [0]).ranks)),
}


@pytest.mark.parametrize("door", DOORS)
def test_cuda_needs_the_switch(door: str) -> None:
    with pytest.raises(RuntimeError, match=r"no GPU: .*COLLSHIM_DEVICE=cpu"):
        DOORS[door]()


@pytest.mark.parametrize("door", DOORS)
def test_switch_maps_cuda_to_the_cpu(door: str) -> None:
    with collshim.options(device="cpu"):
        assert DOORS[door]().device == torch.device("cpu") == flow.device("cuda:0")


@each_of(2, gives=[None, [1.0, 1.0]])
def test_received_tensor_can_be_placed_on_a_gpu() -> Any:
    with collshim.options(device="cpu"):
        if flow.env.get_rank() == 0:
            return flow.comm.send(flow.ones(2).cuda(), 1)
        return flow.comm.recv(0, (2,), flow.float32, flow.device("cuda")).tolist()


def test_checkpoints_load_with_map_location_cuda(tmp_path: Any) -> None:
    flow.save({"weight": flow.ones(2)}, tmp_path / "model")
    with collshim.options(device="cpu"):
        assert flow.load(tmp_path / "model", map_location="cuda")["weight"].tolist() == [1.0, 1.0]


def test_device_counts_match_the_option(run: Run) -> None:
    assert (flow.cuda.is_available(), flow.cuda.device_count(), flow.cuda.current_device()) == (False, 0, 0)

    def rank() -> tuple[Any, ...]:
        with collshim.options(device="cpu"):
            return flow.cuda.is_available(), flow.cuda.device_count(), flow.cuda.current_device()

    assert run(rank, 2) == [(True, 2, 0), (True, 2, 1)]


@each_of(2, gives=[3, 2])
def test_rank_sets_its_own_current_device() -> int:
    with collshim.options(device="cpu", devices=4):
        flow.cuda.set_device(3 - flow.env.get_rank())
        return flow.cuda.current_device()


def test_gpu_synchronization_does_nothing_on_the_cpu() -> None:
    with collshim.options(device="cpu"):
        flow.cuda.synchronize()
        flow.cuda.empty_cache()
        flow.cuda.manual_seed(1)
        first = flow.rand(1).item()
        flow.cuda.manual_seed_all(1)
        assert flow.rand(1).item() == first
        assert flow.cuda.get_device_name() == "CPU"


def test_gradient_scaler_does_nothing_on_the_cpu() -> None:
    scaler, loss = flow.amp.GradScaler(), flow.ones(1)
    assert scaler.scale(loss) is loss
    with collshim.options(device="cpu"), flow.amp.autocast("cuda", flow.bfloat16):
        assert flow.matmul(flow.ones(1, 1), flow.ones(1, 1)).dtype == flow.bfloat16
