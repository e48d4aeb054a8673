"""Training with MegEngine's own tensors and modules, on ranks that ``launcher`` starts."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collshim.megengine as mge
import collshim.megengine.distributed as dist
import collshim.megengine.functional as F
import collshim.megengine.module as M
from collshim.megengine.autodiff import GradManager
from collshim.megengine.core._imperative_rt.core2 import sync
from collshim.megengine.core.autodiff.grad import Grad
from collshim.megengine.distributed.helper import param_pack_concat, param_pack_split
from collshim.megengine.functional.distributed import remote_recv, remote_send
from collshim.megengine.jit import trace
from collshim.megengine.optimizer import SGD

pytestmark = pytest.mark.processes


def on_two(worker: Callable[..., Any], *args: Any) -> list[Any]:
    return list(dist.launcher(worker, n_gpus=2)(*args))


class Net(M.Module):
    """A convolution, and a layer in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = M.Conv2d(1, 2, 3)
        self.heads = [M.Linear(8, 3)]

    def forward(self, x: Any) -> Any:
        out = F.relu(self.conv(x))
        out += 1
        return self.heads[0](F.flatten(out, 1))


def trained(net: Net, data: Any, labels: Any, callbacks: Any = None) -> list[Any]:
    manager = GradManager().attach(net.parameters(), callbacks=callbacks)
    optimizer = SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step(image: Any, label: Any) -> Any:
        with manager:
            loss = F.nn.cross_entropy(net(image), label)
            manager.backward(loss)
        optimizer.step().clear_grad()
        return loss

    traced = trace(step, symbolic=True)
    return [traced(mge.tensor(data), mge.tensor(labels)) for _ in range(3)]


def test_data_parallel_training_matches_serial_training() -> None:
    generator = np.random.default_rng(0)
    data, labels = generator.normal(size=(4, 1, 4, 4)), np.array([0, 1, 2, 0])
    serial = Net()
    state = serial.state_dict()

    def work() -> Any:
        rank, net = dist.get_rank(), Net()
        if rank == 0:
            net.load_state_dict(state)
        dist.bcast_list_(net.parameters())
        rows = slice(2 * rank, 2 * rank + 2)
        losses = trained(net, data[rows], labels[rows], [dist.make_allreduce_cb("mean")])
        means = [F.distributed.all_reduce_sum(loss) / dist.get_world_size() for loss in losses]
        return [mean.item() for mean in means], net.state_dict()

    wanted = [loss.item() for loss in trained(serial, data, labels)]
    for losses, held in on_two(work):
        np.testing.assert_allclose(losses, wanted, rtol=1e-5)
        for name, array in serial.state_dict().items():
            np.testing.assert_allclose(held[name], array, atol=1e-6)


def test_gradient_flows_back_through_sends() -> None:
    def work() -> Any:
        rank = dist.get_rank()
        layer = M.Linear(2 + 2 * rank, 4)
        M.init.ones_(layer.weight)
        with GradManager().attach(layer.parameters()) as manager:
            x = mge.tensor([[1.0, 2.0]]) if rank == 0 else remote_recv(0)
            y = layer(x)
            if rank == 0:
                remote_send(y, dest_rank=1)
                manager.backward()
            else:
                manager.backward(y.mean())
        parameters: list[Any] = list(layer.parameters())
        return [parameter.grad.numpy().tolist() for parameter in parameters]

    assert on_two(work) == [
        [[1.0] * 4, [[1.0, 2.0]] * 4],
        [[0.25] * 4, [[0.75] * 4] * 4],
    ]


def test_grad_callbacks_run_across_ranks() -> None:
    def work() -> Any:
        found: list[Any] = []
        with Grad() as grad:
            if dist.get_rank() == 1:
                remote_send(remote_recv(0), 0)
                grad([], [])
                return found
            x = mge.tensor([1.0, 2.0])
            grad.wrt(x, callback=lambda gradient: found.append(gradient.numpy().tolist()))
            remote_send(x, 1)
            y = remote_recv(1)
            grad([y * y], [mge.tensor([1.0, 1.0])])
        return found

    assert on_two(work) == [[[2.0, 4.0]], []]


def test_launched_rank_receives_megengine_tensors() -> None:
    def work() -> Any:
        if dist.get_rank() == 0:
            remote_send(mge.tensor([1.0], device="xpu0"), 1)
            F.distributed.broadcast(mge.tensor([2.0]))
            return None
        received, sent = remote_recv(0), F.distributed.broadcast(None)
        sync()
        return type(received).__name__, received.device == mge.get_default_device(), str(sent.device), sent.numpy()

    assert on_two(work) == [None, ("Tensor", True, "xpu1:0", [2.0])]


def moments(norm: M.Module, data: Any, weights: Any) -> Any:
    x = mge.tensor(data)
    with GradManager().attach([x, *norm.parameters()]) as manager:
        y = norm(x)
        manager.backward(y, mge.tensor(weights))
    tensors: list[Any] = [y, x.grad, *norm.buffers()]
    held = [tensor.numpy() for tensor in tensors]
    parameters: list[Any] = list(norm.parameters())
    return held, [parameter.grad.numpy() for parameter in parameters]


def test_sync_batch_norm_matches_the_whole_batch() -> None:
    data, weights = np.random.default_rng(1).normal(size=(2, 4, 3, 2, 2))
    (y, dx, mean, var), whole = moments(M.BatchNorm2d(3), data, weights)

    def work() -> Any:
        rows = slice(2 * dist.get_rank(), 2 * dist.get_rank() + 2)
        return moments(M.SyncBatchNorm(3), data[rows], weights[rows])

    found = on_two(work)
    np.testing.assert_allclose(np.concatenate([held[0] for held, _ in found]), y, atol=1e-5)
    np.testing.assert_allclose(np.concatenate([held[1] for held, _ in found]), dx, atol=1e-5)
    for held, _ in found:
        np.testing.assert_allclose(held[2], mean, atol=1e-6)
        np.testing.assert_allclose(held[3], var, atol=1e-6)
    for own, other, both in zip(found[0][1], found[1][1], whole, strict=True):
        np.testing.assert_allclose(own + other, both, atol=1e-5)


def test_launched_rank_queries() -> None:
    def work() -> Any:
        rank, client = dist.get_rank(), dist.get_client()
        client.user_set(f"shape {rank}", mge.tensor([[1.0]]).shape)
        if rank == 0:
            client.user_set("bytes", pickle.dumps([3]))
        values = client.user_get(f"shape {1 - rank}"), pickle.loads(client.user_get("bytes").data)
        group = dist.new_group([1, 0])
        return values, group.is_single_machine, os.environ["NCCL_LAUNCH_MODE"], mge.get_default_device()

    assert on_two(work) == [(([1, 1], [3]), True, "PARALLEL", f"xpu{rank}") for rank in range(2)]


def test_sixteen_ranks_connect_at_once() -> None:
    def work() -> Any:
        return F.distributed.all_reduce_sum(mge.tensor([1])).item()

    assert list(dist.launcher(work, n_gpus=16)()) == [16] * 16


def test_packs_have_the_type_of_their_tensors() -> None:
    whole = param_pack_concat([mge.tensor([1.0]), mge.tensor([[2.0, 3.0]])], mge.tensor([0, 1, 1, 3]), [0, 1, 1, 3])
    parts = param_pack_split(whole, [0, 1, 1, 3], [(1,), (1, 2)])
    assert [type(part).__name__ for part in (whole, *parts)] == ["Tensor"] * 3
    assert [part.numpy().tolist() for part in parts] == [[1.0], [[2.0, 3.0]]]
    assert isinstance(whole, mge.Tensor)


def test_nothing_is_recorded_outside_a_manager() -> None:
    weight = mge.Parameter([1.0])
    with GradManager().attach(weight) as manager:
        loss = weight * 2
        manager.backward(loss)
    assert not weight._value.requires_grad
    assert not (loss + 1)._value.requires_grad


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("quantization", "use torch.ao.quantization"),
        ("traced_module", "use torch.fx"),
    ],
)
def test_missing_names_are_named(name: str, told: str) -> None:
    with pytest.raises(AttributeError, match=told):
        getattr(mge, name)


def test_dump_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="state_dict"):
        trace(lambda x: x).dump("file")
