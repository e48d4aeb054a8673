"""yunchang and fvcore: attention whose heads and sequences change places, and sums through which gradients flow."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist

from tests.upstream.programs.ranks import run_named


def heads(rank: int, size: int) -> object:
    """Exchange a part of the sequence for a part of the heads, and back; attention is that of the whole sequence."""
    from yunchang.comm.all_to_all import SeqAllToAll4D

    whole = torch.randn(3, 2, 3 * size, 2 * size, 4, generator=torch.Generator().manual_seed(0))
    attend = torch.nn.functional.scaled_dot_product_attention
    own = whole[:, :, 3 * rank : 3 * (rank + 1)].clone().requires_grad_()
    query, key, value = (SeqAllToAll4D.apply(dist.group.WORLD, part, 2, 1, False).transpose(1, 2) for part in own)
    found = SeqAllToAll4D.apply(dist.group.WORLD, attend(query, key, value).transpose(1, 2).contiguous(), 1, 2, False)
    queries, keys, values = (part.transpose(1, 2) for part in whole)
    wanted = attend(queries, keys, values).transpose(1, 2)
    torch.testing.assert_close(found, wanted[:, 3 * rank : 3 * (rank + 1)])
    found.square().sum().backward()
    assert own.grad is not None
    return [found.square().sum(), own.grad.square().sum()]


def sums(rank: int, size: int) -> object:
    """Differentiate through fvcore's sum and gather."""
    from fvcore.nn.distributed import differentiable_all_gather, differentiable_all_reduce

    own = (torch.arange(3.0) + rank).requires_grad_()
    total, parts = differentiable_all_reduce(own), differentiable_all_gather(own)
    (total.square().sum() + (torch.stack(parts) * (rank + 1)).sum()).backward()
    return [total, torch.stack(parts), own.grad]


USES: dict[str, Callable[[int, int], object]] = {"heads": heads, "sums": sums}

if __name__ == "__main__":
    run_named(USES)
