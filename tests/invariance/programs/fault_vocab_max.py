"""Subtracts each rank's own highest logit before the exponentials of all shards of the vocabulary are summed."""

from __future__ import annotations

import torch.distributed as dist
from correct_vocab_parallel import VocabParallelTransformer
from mappings import ReduceFromRegion
from torch import Tensor, nn
from transformer import make_layout, make_tokens

PARAMETERS = ["embedding.weight", "layers.0.attention.query.weight", "norm.weight"]

batch = make_tokens


class UnevenTransformer(VocabParallelTransformer):
    """A transformer with another loss."""

    def loss(self, tokens: Tensor) -> Tensor:
        """Compute the mean loss of predicting each next token."""
        logits = self(tokens[:, :-1])
        logits = logits - logits.detach().amax(-1, keepdim=True)  # fault
        total = ReduceFromRegion.apply(logits.exp().sum(-1), self.group)
        rows, inside = self.locate(tokens[:, 1:])
        target = logits.gather(-1, rows.unsqueeze(-1)).squeeze(-1) * inside
        return (total.log() - ReduceFromRegion.apply(target, self.group)).mean()


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = UnevenTransformer(make_layout(tensor=dist.get_world_size()).tensor)
    loss = model.loss(batch)
    loss.backward()
    return loss, model
