"""A transformer whose vocabulary is divided over the ranks, in the embedding and in the loss."""

from __future__ import annotations

import torch.distributed as dist
import torch.nn.functional as F
from mappings import CopyToRegion, ReduceFromRegion, shard
from torch import Tensor, nn
from transformer import Transformer, make_layout, make_tokens

batch = make_tokens


class VocabParallelTransformer(Transformer):
    """A transformer with a shard of the tied embedding."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        super().__init__(group)
        self.embedding.weight = nn.Parameter(shard(self.embedding.weight.detach(), 0, group))
        self.start = dist.get_rank(group) * len(self.embedding.weight)

    def locate(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return the tokens' rows in this shard, and whether they are in it."""
        rows = tokens - self.start
        inside = (rows >= 0) & (rows < len(self.embedding.weight))
        return rows.where(inside, 0), inside

    def forward(self, tokens: Tensor) -> Tensor:
        """Compute this shard's logits."""
        rows, inside = self.locate(tokens)
        x = ReduceFromRegion.apply(self.embedding(rows) * inside.unsqueeze(-1), self.group)
        for layer in self.layers:
            x = layer(x)
        return F.linear(CopyToRegion.apply(self.norm(x), self.group), self.embedding.weight)

    def loss(self, tokens: Tensor) -> Tensor:
        """Compute the mean loss of predicting each next token."""
        logits = self(tokens[:, :-1])
        highest = logits.detach().amax(-1)
        dist.all_reduce(highest, dist.ReduceOp.MAX, group=self.group)
        logits = logits - highest.unsqueeze(-1)
        total = ReduceFromRegion.apply(logits.exp().sum(-1), self.group)
        rows, inside = self.locate(tokens[:, 1:])
        target = logits.gather(-1, rows.unsqueeze(-1)).squeeze(-1) * inside
        return (total.log() - ReduceFromRegion.apply(target, self.group)).mean()


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = VocabParallelTransformer(make_layout(tensor=dist.get_world_size()).tensor)
    loss = model.loss(batch)
    loss.backward()
    return loss, model
