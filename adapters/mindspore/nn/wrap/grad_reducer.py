"""``mindspore.nn.DistributedGradReducer`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore.common.parameter import Parameter
from collshim.mindspore.communication import comm_func
from collshim.mindspore.communication.groups import HCCL_WORLD_COMM_GROUP
from collshim.mindspore.communication.management import get_group_size
from collshim.mindspore.context import get_auto_parallel_context
from collshim.mindspore.nn.cell import Cell

__all__ = ["DistributedGradReducer"]


class DistributedGradReducer(Cell):
    """A Cell that returns the sum of each gradient over the ranks of ``group``, or with ``mean`` the mean, on each.

    The gradient of a ``layerwise_parallel`` parameter is returned unchanged.

    Args:
        parameters: the parameters of the gradients.
        mean: whether sums are divided by ``degree``; None means ``gradients_mean`` of ``set_auto_parallel_context``.
        degree: the divisor for ``mean``; None means the size of the group.
        fusion_type: has no effect.
        group: the group's name.

    Raises:
        ValueError: ``degree`` is not a positive int; in a call, there is not one gradient per parameter.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        mean: bool | None = None,
        degree: int | None = None,
        fusion_type: int = 1,
        group: str = HCCL_WORLD_COMM_GROUP,
    ) -> None:
        super().__init__(auto_prefix=False)
        if degree is not None and (not isinstance(degree, int) or degree <= 0):
            refuse(ValueError, f"For 'DistributedGradReducer', 'degree' must be a positive int, but got {degree!r}")
        self.mean = get_auto_parallel_context("gradients_mean") if mean is None else mean
        self.degree, self.group = degree, group
        self._reduced = [not getattr(parameter, "layerwise_parallel", False) for parameter in parameters]

    def construct(self, grads: Sequence[Any]) -> tuple[Any, ...]:
        """Return the reduced gradients."""
        if len(grads) != len(self._reduced):
            refuse(ValueError, f"DistributedGradReducer: {len(self._reduced)} gradients wanted, but got {len(grads)}")
        degree = self.degree or get_group_size(self.group)
        pairs = zip(grads, self._reduced, strict=True)
        return tuple(self._of(grad, degree) if reduced else grad for grad, reduced in pairs)

    def _of(self, grad: Any, degree: int) -> Any:
        with torch.no_grad():
            total = comm_func.all_reduce(grad, "sum", self.group)[0]
            return total / degree if self.mean else total
