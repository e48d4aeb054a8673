"""torch.distributed.rpc beside the default group: calls, remote references, and distributed autograd."""

from __future__ import annotations

import os

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
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://127.0.0.1:{_port(rank)}", _transports=["uv"])
    rpc.init_rpc(f"rank{rank}", rank=rank, world_size=size, rpc_backend_options=options)
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
    show(rank, result=result.detach(), remote=remote.detach(), total=total, local=os.environ["LOCAL_RANK"])


def _port(rank: int) -> int:
    """Return a free port that all ranks know."""
    import socket

    port = torch.zeros(1, dtype=torch.long)
    if rank == 0:
        with socket.socket() as place:
            place.bind(("127.0.0.1", 0))
            port[0] = place.getsockname()[1]
    dist.broadcast(port, 0)
    return int(port.item())


if __name__ == "__main__":
    run(main)
