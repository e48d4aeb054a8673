"""``mindspore.Tensor``, for the documented examples of ``comm_func``."""

from __future__ import annotations

from typing import Any

import torch


class _TensorType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch.Tensor)


class Tensor(metaclass=_TensorType):
    """Makes a torch tensor with a copy of ``input_data``; every torch tensor is an instance.

    Python floats become float32 and integers int64, a NumPy array keeps its dtype, as in MindSpore.
    """

    def __new__(  # type: ignore[misc]  # an alias that also converts
        cls, input_data: Any, dtype: torch.dtype | None = None
    ) -> torch.Tensor:
        """A torch tensor with a copy of ``input_data``."""
        return torch.tensor(input_data, dtype=dtype)
