"""``tf.types.experimental``: what counts as a tensor, and the classes of distributed values."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import torch

from collshim.adapting.absent import saying
from collshim.tensorflow.types.experimental import distributed

__all__ = ["TensorLike", "distributed"]

TensorLike: TypeAlias = torch.Tensor | float | bool | str | bytes | complex | tuple | list | np.ndarray | np.generic  # type: ignore[type-arg]

__getattr__ = saying(__name__, "functions are not traced")
