"""A small GPT in the style of LiBai: data parallel, tensor parallel, and its layers on stages of ranks; or on one rank.

The batch is split on the first dimension of ranks; on the second, matrices are split by columns, then by rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import collshim.oneflow as flow

S, B = flow.sbp.split, flow.sbp.broadcast
WORDS, WIDTH, LENGTH, BATCH, HEADS = 16, 8, 6, 4, 2
BOTH = (B, B)
ROWS = (S(0), B)


class Stage:
    """Ranks that have some of the layers; None is this rank alone, with local tensors."""

    def __init__(self, ranks: Any) -> None:
        self.place = None if ranks is None else flow.placement("cpu", ranks=ranks)

    def spread(self, values: Any, sbp: Any) -> Any:
        """Return a new tensor."""
        return flow.tensor(values) if self.place is None else flow.tensor(values, placement=self.place, sbp=sbp)

    def move(self, tensor: Any, sbp: Any) -> Any:
        """Return a tensor on these ranks, spread in this way."""
        return tensor if self.place is None else tensor.to_global(placement=self.place, sbp=sbp)


class Weights:
    """Makes parameters, always the same ones."""

    def __init__(self) -> None:
        self._numbers = np.random.default_rng(0)

    def __call__(self, stage: Stage, shape: tuple[int, ...], sbp: Any) -> Any:
        values = (self._numbers.standard_normal(shape) * 0.3).astype(np.float32)
        return flow.nn.Parameter(stage.spread(values, sbp))


class Norm(flow.nn.Module):
    """A layer norm of functions that OneFlow 0.9.0 has on the CPU."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self.weight = flow.nn.Parameter(stage.spread(np.ones(WIDTH, np.float32), BOTH))
        self.bias = flow.nn.Parameter(stage.spread(np.zeros(WIDTH, np.float32), BOTH))

    def forward(self, x: Any) -> Any:
        apart = x - x.mean(-1, keepdim=True)
        return apart / flow.sqrt((apart * apart).mean(-1, keepdim=True) + 1e-5) * self.weight + self.bias


class Block(flow.nn.Module):
    """Attention and a perceptron."""

    def __init__(self, stage: Stage, weights: Weights, seen: dict[str, Any]) -> None:
        super().__init__()
        self.stage, self.seen = stage, seen
        self.before_heads, self.before_hidden = Norm(stage), Norm(stage)
        self.heads, self.heads_bias = weights(stage, (WIDTH, 3 * WIDTH), (B, S(1))), weights(stage, (24,), (B, S(0)))
        self.joined, self.joined_bias = weights(stage, (WIDTH, WIDTH), (B, S(0))), weights(stage, (WIDTH,), BOTH)
        self.up, self.up_bias = weights(stage, (WIDTH, 4 * WIDTH), (B, S(1))), weights(stage, (32,), (B, S(0)))
        self.down, self.down_bias = weights(stage, (4 * WIDTH, WIDTH), (B, S(0))), weights(stage, (WIDTH,), BOTH)

    def forward(self, x: Any) -> Any:
        x = x + (self.stage.move(self.attend(self.before_heads(x)), ROWS) + self.joined_bias)
        hidden = flow.nn.functional.gelu(flow.matmul(self.before_hidden(x), self.up) + self.up_bias)
        lowered = flow.matmul(hidden, self.down)
        self.seen.update(hidden=hidden, lowered=lowered)
        return x + (self.stage.move(lowered, ROWS) + self.down_bias)

    def attend(self, x: Any) -> Any:
        later = np.triu(np.full((1, 1, LENGTH, LENGTH), -1e9, np.float32), 1)
        each = flow.matmul(x, self.heads) + self.heads_bias
        each = each.view(BATCH, LENGTH, HEADS, -1).permute(0, 2, 1, 3)
        query, key, value = flow.chunk(each, 3, -1)
        scores = flow.matmul(query, key.transpose(-1, -2)) / 2.0
        chances = flow.softmax(scores + self.stage.spread(later, BOTH), -1)
        found = flow.matmul(chances, value).transpose(1, 2).reshape(BATCH, LENGTH, WIDTH)
        self.seen.update(heads=each, found=found)
        return flow.matmul(found, self.joined)


class Model(flow.nn.Module):
    """The model; ``seen`` are tensors of the last call."""

    def __init__(self, stages: Sequence[Any]) -> None:
        super().__init__()
        weights, self.seen = Weights(), dict[str, Any]()
        self.first, self.last = Stage(stages[0]), Stage(stages[-1])
        self.words = weights(self.first, (WORDS, WIDTH), (B, S(0)))
        self.places = weights(self.first, (LENGTH, WIDTH), BOTH)
        self.blocks = flow.nn.ModuleList([Block(stage, weights, self.seen) for stage in (self.first, self.last)])
        self.norm = Norm(self.last)
        self.head = weights(self.last, (WIDTH, WORDS), (B, S(1)))

    def forward(self, words: Any, targets: Any) -> Any:
        looked_up = flow._C.gather(self.words, words, axis=0)
        x = self.first.move(looked_up, ROWS) + self.places
        for block in self.blocks:
            x = block(block.stage.move(x, ROWS))
        scores = flow.matmul(self.norm(x), self.head)
        rows = self.last.move(scores, ROWS).view(BATCH * LENGTH, WORDS)
        loss = flow.nn.functional.cross_entropy(rows, self.last.move(targets, ROWS).view(BATCH * LENGTH))
        self.seen.update(looked_up=looked_up, scores=scores, loss=loss)
        return loss


class Training(flow.nn.Graph):
    """The training step as a graph."""

    def __init__(self, model: Any, optimizer: Any) -> None:
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)

    def build(self, words: Any, targets: Any) -> Any:
        loss = self.model(words, targets)
        loss.backward()
        return loss


def train(stages: Sequence[Any], clipped: bool = False, as_graph: bool = False) -> tuple[list[float], Any]:
    """Return the losses of five steps, and the model."""
    model, numbers = Model(stages), np.random.default_rng(1)
    limits = {"clip_grad_max_norm": 1.0, "clip_grad_norm_type": 2.0}
    group: Any = [{"params": list(model.parameters()), **limits}]
    optimizer = flow.optim.AdamW(group if clipped else model.parameters(), lr=0.02)
    graph, losses = Training(model, optimizer) if as_graph else None, list[float]()
    for _ in range(5):
        text = numbers.integers(0, WORDS, (BATCH, LENGTH + 1))
        words, targets = (model.first.spread(each.copy(), ROWS) for each in (text[:, :-1], text[:, 1:]))
        if graph is not None:
            losses.append(graph(words, targets).item())
            continue
        loss = model(words, targets)
        optimizer.zero_grad()
        loss.backward()
        if clipped:
            optimizer.clip_grad()
        optimizer.step()
        losses.append(loss.item())
    return losses, model
