"""torch.distributed.rpc beside the default group: calls, remote references, and distributed autograd."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import rpc
from torch.distributed.autograd import backward, context, get_gradients

from tests.upstream.programs.ranks import run, show


def product(left: Tensor, right: Tensor) -> Tensor:
    return left * right


def reduced(value: float) -> float:
    """Take part in a collective from a thread of RPC."""
    tensor = torch.tensor([value])
    dist.all_reduce(tensor)
    return tensor.item()


def main(rank: int, size: int) -> None:
    """Call the next rank, and differentiate through the call."""
    rpc.init_rpc(f"rank{rank}", rank=rank, world_size=size)
    following = f"rank{(rank + 1) % size}"
    left, right = torch.tensor([2.0 + rank]).requires_grad_(), torch.tensor([3.0])
    with context() as identity:
        result = rpc.rpc_sync(following, product, (left, right))
        backward(identity, [result.sum()])
        assert get_gradients(identity)[left].tolist() == [3.0]
    remote = rpc.remote(following, product, (left, right)).to_here()
    dist.barrier()
    total = rpc.rpc_sync(following, reduced, (float(rank),))
    assert total == sum(range(size))
    dist.barrier()
    rpc.shutdown()
    show(rank, result=result.detach(), remote=remote.detach(), total=total)


if __name__ == "__main__":
    run(main)
