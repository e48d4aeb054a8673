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
    """Called with gradients, every rank of ``group`` gets their sums over all ranks, or with ``mean`` their means.

    A ``layerwise_parallel`` parameter's gradient comes back as it is.

    Args:
        parameters: those that the gradients are of.
        mean: whether sums are divided by ``degree``; None means ``gradients_mean`` of ``set_auto_parallel_context``.
        degree: None means the size of the group.
        fusion_type: accepted.
        group: the group's name.

    Raises:
        TypeError: ``mean`` is no bool, or ``degree`` no int.
        ValueError: ``degree`` is not positive; when called: not a gradient for each parameter.
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
        if not isinstance(mean, bool | None) or not isinstance(degree, int | None):
            refuse(TypeError, f"DistributedGradReducer: mean must be bool and degree int, but got {mean!r}, {degree!r}")
        if degree is not None and degree <= 0:
            refuse(ValueError, f"For 'DistributedGradReducer', 'degree' must be positive, but got {degree}")
        self.mean = get_auto_parallel_context("gradients_mean") if mean is None else mean
        self.degree, self.group = degree, group
        self._reduced = [not getattr(parameter, "layerwise_parallel", False) for parameter in parameters]

    def construct(self, grads: Sequence[Any]) -> tuple[Any, ...]:
        """The reduced gradients."""
        if len(grads) != len(self._reduced):
            refuse(ValueError, f"DistributedGradReducer: {len(self._reduced)} gradients wanted, but got {len(grads)}")
        degree = self.degree or get_group_size(self.group)
        pairs = zip(grads, self._reduced, strict=True)
        return tuple(self._of(grad, degree) if reduced else grad for grad, reduced in pairs)

    def _of(self, grad: Any, degree: int) -> Any:
        with torch.no_grad():
            total = comm_func.all_reduce(grad, "sum", self.group)[0]
            return total / degree if self.mean else total
