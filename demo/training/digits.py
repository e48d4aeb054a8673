"""The data: scikit-learn's 1,797 pictures of handwritten digits, 8 by 8."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

BATCH = 256
EPOCHS = 10


class Digits(NamedTuple):
    """The images ``(1797, 64)``, from 0 to 1, and the labels ``(1797,)``, from 0 to 9."""

    images: Tensor
    labels: Tensor

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the batches of all ranks together, shuffled in the same way on every rank."""
        generator = torch.Generator().manual_seed(0)
        for _ in range(EPOCHS):
            for chosen in torch.randperm(len(self.labels), generator=generator).split(BATCH):
                if len(chosen) == BATCH:
                    yield self.images[chosen], self.labels[chosen]


def load() -> Digits:
    """Load the pictures that come with scikit-learn."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return Digits(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels))
