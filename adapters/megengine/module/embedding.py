"""``Embedding`` (source: MegEngine 1.13.0, ``megengine.module.embedding``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from collshim.errors import ArgumentValueError
from collshim.megengine.functional import _layers
from collshim.megengine.module import init
from collshim.megengine.module.module import Module
from collshim.megengine.tensor import Parameter, Tensor


class Embedding(Module):
    """Looks up a row of a weight, (number, dimension), for each element; with ``freeze``, the weight has no gradient.

    Raises:
        ValueError: ``padding_idx``, ``max_norm`` or ``norm_type`` is passed, which MegEngine does not support either;
            or ``initial_weight`` has a wrong shape.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float | None = None, initial_weight: Tensor | None = None, freeze: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        if padding_idx is not None or max_norm is not None or norm_type is not None:
            raise ArgumentValueError("Not support padding_idx, max_norm and norm_type now: leave them out")
        self.num_embeddings, self.embedding_dim, self.freeze = num_embeddings, embedding_dim, freeze
        shape = (num_embeddings, embedding_dim)
        if initial_weight is not None and initial_weight.shape != shape:
            raise ArgumentValueError(f"The weight shape is {initial_weight.shape}, should be {shape}")
        self.weight = Parameter(np.zeros(shape, np.float32) if initial_weight is None else initial_weight.numpy())
        if initial_weight is None:
            self.reset_parameters()

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool | None = True, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float | None = None,
    ) -> Embedding:  # fmt: skip
        """Return a module with the rows of ``embeddings``, which by default has no gradient."""
        if embeddings.ndim != 2:
            raise ArgumentValueError(f"Embeddings parameter is expected to be 2-dimensional, has {embeddings.ndim}")
        rows, columns = embeddings.shape
        return cls(rows, columns, padding_idx, max_norm, norm_type, embeddings, bool(freeze))

    def reset_parameters(self) -> None:
        """Reset the weight."""
        init.normal_(self.weight)

    def forward(self, inputs: Any) -> Any:
        """Look up rows, see ``functional.embedding``."""
        return _layers.embedding(inputs, self.weight.detach() if self.freeze else self.weight)
