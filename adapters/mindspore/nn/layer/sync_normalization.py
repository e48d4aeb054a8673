"""``SyncBatchNorm`` of ``mindspore.nn`` (source: MindSpore 2.10.0): batch normalization over the ranks of a group."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import torch

from collshim.adapting.refusing import refuse
from collshim.arrays import as_torch
from collshim.mindspore._checkparam import check_type
from collshim.mindspore.communication import management
from collshim.mindspore.communication.groups import HCCL_WORLD_COMM_GROUP, groups
from collshim.mindspore.nn.layer.normalization import _BatchNorm
from collshim.mindspore.ops.operations._collectives import AllReduce
from collshim.mindspore.tensor import Tensor

__all__ = ["SyncBatchNorm"]


class SyncBatchNorm(_BatchNorm):
    """``BatchNorm2d`` with the mean and the variance of all samples on the group's ranks, which must all call it.

    Inputs are (N, C) or (N, C, H, W). MindSpore supports it on "Ascend" only.

    Args:
        num_features: the number of channels; the next eight arguments are those of ``BatchNorm2d``.
        process_groups: lists of global ranks. This rank's group is the list with this rank; a rank that is alone in
            its list, or in no list, normalizes its own batch. None means all ranks, 0 means only this rank.

    Raises:
        TypeError: ``process_groups`` is not a list of lists.
        ValueError: a rank occurs twice, or is not in the world; in a call, the input has the wrong number of axes.
    """

    _RANKS = (2, 4)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros",
        moving_var_init: Any = "ones",
        use_batch_statistics: bool | None = None,
        process_groups: list[list[int]] | None = None,
        dtype: Any = torch.float32,
    ) -> None:
        initial = (gamma_init, beta_init, moving_mean_init, moving_var_init)
        super().__init__(num_features, eps, momentum, affine, *initial, use_batch_statistics, dtype=dtype)
        self.process_groups = process_groups
        self.group_name = self._group_name(process_groups)
        self._sum = AllReduce(group=self.group_name) if self.group_name else None

    def _group_name(self, process_groups: Any) -> str:
        """Return the name of this rank's group, creating it if it is new; "" if no other rank is in it."""
        if process_groups == 0 and not isinstance(process_groups, list):
            return ""
        rank, size = management.get_rank(), management.get_group_size()
        if process_groups is None:
            return HCCL_WORLD_COMM_GROUP if size > 1 else ""
        for each in [process_groups, *check_type(process_groups, "process_groups", self.cls_name, list)]:
            check_type(each, "sub group", self.cls_name, list)
        ranks = list(itertools.chain(*process_groups))
        if len(set(ranks)) < len(ranks) or not all(0 <= each < size for each in ranks):
            text = (
                f"rank ids in 'process_groups' must be different ones from 0 to {size - 1}, but got {process_groups}."
            )
            refuse(ValueError, f"For '{self.cls_name}', {text}")
        own: list[int] = next((each for each in process_groups if rank in each), [])
        if len(own) < 2:
            return ""
        name = f"{len(own)}_{hashlib.sha256('_'.join(map(str, own)).encode()).hexdigest()}"
        if name not in groups().by_name:
            management.create_group(name, own)
        return name

    def construct(self, x: Any) -> Any:
        """Return the result, in the shape of the input."""
        trains = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        if self._sum is None or not trains:
            return super().construct(x)
        if x.dim() not in self._RANKS:
            refuse(ValueError, f"For {self.cls_name!r}, the input must be 2D or 4D, but got the shape {tuple(x.shape)}")
        axes = [axis for axis in range(x.dim()) if axis != 1]
        shape = [1, self.num_features] + [1] * (x.dim() - 2)
        own = as_torch(x).to(torch.float32)
        count = torch.full((1,), x.numel() / max(x.size(1), 1))
        total = as_torch(self._sum(torch.cat([own.sum(axes), count])))
        number = total[-1].detach()
        mean = total[:-1] / number
        centred = own - mean.reshape(shape)
        variance = as_torch(self._sum(centred.square().sum(axes))) / number
        with torch.no_grad():
            unbiased = variance * (number / (number - 1).clamp(min=1))
            self.moving_mean.lerp_(mean.to(self.moving_mean.dtype), self.momentum)
            self.moving_variance.lerp_(unbiased.to(self.moving_variance.dtype), self.momentum)
        scale = as_torch(self.gamma) * torch.rsqrt(variance + self.eps)
        made = centred * scale.reshape(shape) + as_torch(self.beta).reshape(shape)
        return made.to(x.dtype).as_subclass(Tensor)
