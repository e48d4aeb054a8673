"""ring-attention-pytorch and st-moe-pytorch: sequences and experts that are divided among the ranks."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from tests.upstream.programs.ranks import run_named

BUCKET = 4


def _loss(size: int, *, is_ring: bool, causal: bool) -> tuple[Tensor, Tensor]:
    """Return the loss of a whole sequence, and the sum of the squares of the gradients."""
    from ring_attention_pytorch import RingTransformer

    torch.manual_seed(3)
    model = RingTransformer(
        num_tokens=32, dim=16, depth=2, heads=2, dim_head=8, causal=causal, ring_attn=is_ring, ring_seq_size=2 * BUCKET,
        bucket_size=BUCKET, use_cuda_kernel=False,
    )  # fmt: skip
    tokens = torch.randint(0, 32, (1, 2 * BUCKET * size + 1), generator=torch.Generator().manual_seed(5))
    loss = model(tokens, mask=torch.ones_like(tokens, dtype=torch.bool), return_loss=True)
    loss.backward()
    return loss.detach(), torch.stack([p.grad.square().sum() for p in model.parameters() if p.grad is not None]).sum()


def attention(rank: int, size: int) -> object:
    """Pass keys and values around the ring; the mean of the ranks' losses is that of the whole sequence."""
    found = []
    for causal in (True, False):
        loss, gradient = _loss(size, is_ring=True, causal=causal)
        dist.all_reduce(mean := loss.clone())
        torch.testing.assert_close(mean / size, _loss(size, is_ring=False, causal=causal)[0])
        found += [loss, gradient]
    return found


def decoding(rank: int, size: int) -> object:
    """Divide the keys among the ranks; the result is that of softmax attention."""
    from ring_attention_pytorch.tree_attn_decoding import tree_attn_decode

    generator = torch.Generator().manual_seed(1)
    query = torch.randn(2, 4, 1, 8, generator=generator)
    key, value = torch.randn(2, 2, 4, 16, 8, generator=generator)
    found = tree_attn_decode(query, key, value, use_triton=False)
    torch.testing.assert_close(found, torch.nn.functional.scaled_dot_product_attention(query, key, value))
    return found.sum()


def experts(rank: int, size: int) -> object:
    """Exchange tokens with the ranks of their experts; the ranks' sequences have different lengths."""
    from st_moe_pytorch import MoE

    torch.manual_seed(1)
    layer = MoE(dim=8, num_experts=4, gating_top_n=2)
    torch.manual_seed(rank)
    tokens = torch.randn(1, 6 + rank, 8, requires_grad=True)
    found = layer(tokens)
    (found[0].sum() + found[1]).backward()
    assert tokens.grad is not None
    return [found[0].sum(), found[1], tokens.grad.square().sum()]


run_named({"attention": attention, "decoding": decoding, "experts": experts})
