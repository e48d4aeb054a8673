"""vector-quantize-pytorch: codebooks that all ranks learn from all ranks' vectors stay equal on all of them."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from vector_quantize_pytorch import LFQ, ResidualFSQ, ResidualVQ, VectorQuantize

from tests.upstream.programs.ranks import run_named

KINDS: dict[str, dict[str, Any]] = {
    "k-means": {"kmeans_init": True, "kmeans_iters": 3},
    "cosine": {"kmeans_init": True, "use_cosine_sim": True},
    "dead-codes": {"threshold_ema_dead_code": 2},
    "affine": {"affine_param": True, "sync_affine_param": True},
}


def _state(layer: nn.Module) -> torch.Tensor:
    """Check that the floating-point buffers are equal on all ranks; return the sum of their squares."""
    found = [buffer.detach().double().flatten() for buffer in layer.buffers() if buffer.is_floating_point()]
    own = torch.cat(found) if found else torch.zeros(1, dtype=torch.float64)
    dist.broadcast(first := own.clone(), src=0)
    torch.testing.assert_close(own, first)
    return own.square().sum()


def _vectors(rank: int, step: int) -> torch.Tensor:
    return torch.randn(2, 12, 16, generator=torch.Generator().manual_seed(100 * rank + step))


def learned(rank: int, size: int) -> object:
    """Learn codebooks by moving averages, in three steps each."""
    found = {}
    for kind, options in KINDS.items():
        torch.manual_seed(0)
        layer = VectorQuantize(dim=16, codebook_size=8, decay=0.8, **options)
        torch.manual_seed(rank)
        losses = [layer(_vectors(rank, step))[2].sum() for step in range(3)]
        found[kind] = [torch.stack(losses), _state(layer)]
    return found


def residual(rank: int, size: int) -> object:
    """Draw how many residual quantizers are used, which all ranks must agree on."""
    found = []
    for kind, options in ((ResidualVQ, {"codebook_size": 8}), (ResidualFSQ, {"levels": [4, 4, 3]})):
        torch.manual_seed(0)
        layer = kind(dim=16, num_quantizers=3, quantize_dropout=True, **options)
        indices = layer(_vectors(rank, 0))[1]
        used = (indices >= 0).flatten(0, -2).any(0).float()
        dist.broadcast(first := used.clone(), src=0)
        assert used.equal(first), f"rank {rank} uses {used.tolist()}, rank 0 {first.tolist()}"
        found.append(used.sum())
    return found


def entropy(rank: int, size: int) -> object:
    """Take the entropy of all ranks' codes."""
    torch.manual_seed(0)
    return LFQ(dim=8, codebook_size=2**8)(_vectors(rank, 0)[..., :8]).entropy_aux_loss


run_named({"learned": learned, "residual": residual, "entropy": entropy})
