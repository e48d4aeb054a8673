"""DTensor, DeviceMesh, tensor and sequence parallel plans, loss parallelism, and ShardedTensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed._shard import sharded_tensor
from torch.distributed._shard.sharding_spec import ChunkShardingSpec
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

from tests.upstream.programs.ranks import run_named


def redistribute(rank: int, size: int) -> object:
    """Go from each placement to each other one."""
    mesh = init_device_mesh("cpu", (size,))
    whole = torch.arange(12.0 * 5).reshape(12, 5)  # 5 columns are an uneven part
    found = []
    placements: list[Placement] = [Shard(0), Shard(1), Replicate(), Partial()]
    for start in placements:
        for end in placements[:-1]:
            source = DTensor.from_local(whole, mesh, [start]) if start.is_partial() else None
            tensor = distribute_tensor(whole, mesh, [start]) if source is None else source
            moved = tensor.redistribute(mesh, [end])
            torch.testing.assert_close(moved.full_tensor(), whole * (size if start.is_partial() else 1))
            found.append(float(moved.to_local().sum()))
    return found


def two_dimensions(rank: int, size: int) -> object:
    """Shard over two dimensions of a mesh, and multiply."""
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("rows", "columns"))
    left, right = torch.arange(24.0).reshape(4, 6), torch.arange(48.0).reshape(6, 8) / 10

    def product(of_left: list[Placement], of_right: list[Placement]) -> Any:
        return distribute_tensor(left, mesh, of_left) @ distribute_tensor(right, mesh, of_right)

    whole = product([Shard(0), Replicate()], [Replicate(), Shard(1)])
    torch.testing.assert_close(whole.full_tensor(), left @ right)
    partial = product([Replicate(), Shard(1)], [Replicate(), Shard(0)])
    torch.testing.assert_close(partial.full_tensor(), left @ right)
    return {"local": whole.to_local(), "placements": str(partial.placements)}


def meshes(rank: int, size: int) -> object:
    """Slice and flatten a mesh, and reduce in its groups."""
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("outer", "inner"))
    found: dict[str, object] = {"coordinate": mesh.get_coordinate()}
    for name in ("outer", "inner"):
        part = mesh[name]
        tensor = torch.tensor([float(rank + 1)])
        dist.all_reduce(tensor, group=part.get_group())
        found[name] = [
            tensor.item(),
            part.get_local_rank(),
            part.size(),
            dist.get_process_group_ranks(part.get_group()),
        ]
    flat = mesh["outer", "inner"]._flatten("all")
    tensor = torch.tensor([float(rank + 1)])
    dist.all_reduce(tensor, group=flat.get_group())
    assert tensor.item() == size * (size + 1) / 2
    again = DeviceMesh.from_group(mesh["inner"].get_group(), "cpu")
    return {**found, "again": again.mesh.tolist(), "reversed": _reversed(rank, size)}


def _reversed(rank: int, size: int) -> object:
    """Make a mesh whose ranks are in another order."""
    mesh = DeviceMesh("cpu", torch.arange(size).flip(0))
    tensor = distribute_tensor(torch.arange(2.0 * size), mesh, [Shard(0)])
    assert tensor.full_tensor().tolist() == torch.arange(2.0 * size).tolist()
    return tensor.to_local()


class Block(nn.Module):
    """A normalized layer with a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.up = nn.Linear(8, 16)
        self.down = nn.Linear(16, 8)

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs + cast(Tensor, self.down(torch.relu(self.up(self.norm(inputs)))))


def _blocks(mesh: DeviceMesh, plan: dict[str, Any]) -> object:
    """Train a block with a plan, beside one without."""
    torch.manual_seed(0)
    own, alone = Block(), Block()
    alone.load_state_dict(own.state_dict())
    parallel = parallelize_module(own, mesh, plan)
    inputs = torch.arange(64.0).reshape(2, 4, 8).sin()
    losses = []
    loss = torch.zeros(())
    for model in (parallel, alone):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
        for _ in range(3):
            optimizer.zero_grad()
            output = model(inputs)
            loss = (output.full_tensor() if isinstance(output, DTensor) else output).square().mean()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    torch.testing.assert_close(losses[0], losses[1])
    return losses


def tensor_parallel(rank: int, size: int) -> object:
    mesh = init_device_mesh("cpu", (size,))
    return _blocks(mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})


def sequence_parallel(rank: int, size: int) -> object:
    """Shard the sequence outside the layers."""
    mesh = init_device_mesh("cpu", (size,))
    return _blocks(
        mesh,
        {
            "": PrepareModuleInput(input_layouts=(Replicate(),), desired_input_layouts=(Shard(1),)),
            "norm": SequenceParallel(),
            "up": ColwiseParallel(input_layouts=Shard(1)),
            "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        },
    )


def parallel_loss(rank: int, size: int) -> object:
    """Take the cross entropy of logits that are sharded over the classes."""
    mesh = init_device_mesh("cpu", (size,))
    logits, targets = torch.arange(32.0).reshape(4, 8).sin(), torch.tensor([0, 3, 5, 7])
    sharded = distribute_tensor(logits, mesh, [Shard(1)]).requires_grad_()
    with loss_parallel():
        loss = nn.functional.cross_entropy(sharded, targets)
        loss.backward()
    wanted = nn.functional.cross_entropy(logits, targets)
    torch.testing.assert_close(cast(Any, loss).full_tensor(), wanted)
    return {"loss": wanted, "gradient": cast(Any, sharded.grad).full_tensor()}


def sharded_tensors(rank: int, size: int) -> object:
    """Make ShardedTensors, and gather them on rank 0."""
    spec = ChunkShardingSpec(dim=0, placements=[f"rank:{other}/cpu" for other in range(size)])
    ones = sharded_tensor.ones(spec, 2 * size + 1, 3)
    place = torch.zeros(2 * size + 1, 3) if rank == 0 else None
    ones.gather(0, place)
    assert place is None or place.sum().item() == 3 * (2 * size + 1)
    local = torch.full((2, 2), float(rank))
    whole = sharded_tensor.init_from_local_shards(
        [sharded_tensor.Shard.from_tensor_and_offsets(local, [2 * rank, 0], rank)], 2 * size, 2
    )
    return {"size": list(whole.size()), "local": [list(shard.tensor.shape) for shard in ones.local_shards()]}


USES: dict[str, Callable[[int, int], object]] = {
    "redistribute": redistribute,
    "two-dimensions": two_dimensions,
    "meshes": meshes,
    "tensor-parallel": tensor_parallel,
    "sequence-parallel": sequence_parallel,
    "parallel-loss": parallel_loss,
    "sharded-tensors": sharded_tensors,
}


if __name__ == "__main__":
    run_named(USES)
