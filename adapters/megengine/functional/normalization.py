"""Normalizations over one rank's batch or all ranks' batches (source: MegEngine 1.13.0, ``megengine.functional.nn``).

Running means and variances are tensors of shape (1, C, 1, 1), which become ``momentum`` times the old value plus
``1 - momentum`` times the batch's.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from collshim.megengine.core.tensor.values import Value, floating, ints, require, value_of
from collshim.megengine.distributed._ranks import WORLD, Group
from collshim.megengine.distributed.group import is_distributed
from collshim.megengine.functional.distributed import all_reduce_sum
from collshim.megengine.tensor import Tensor, computes

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "sync_batch_norm"]


@computes
def layer_norm(
    inp: Value, normalized_shape: Any, affine: bool, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Value:
    """Normalize ``inp`` to mean 0 and variance 1 over its last axes; if ``affine``, times ``weight`` plus ``bias``."""
    return F.layer_norm(inp, ints(normalized_shape), weight if affine else None, bias if affine else None, eps)


@computes
def group_norm(
    inp: Value, num_groups: int, affine: bool, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Value:
    """Normalize like ``layer_norm``, but over groups of channels."""
    flat = [None if each is None or not affine else each.reshape(-1) for each in (weight, bias)]
    return F.group_norm(inp, num_groups, flat[0], flat[1], eps)


@computes
def instance_norm(inp: Value, affine: bool, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Value:
    """Normalize like ``layer_norm``, but over each channel of each sample."""
    flat = [None if each is None or not affine else each.reshape(-1) for each in (weight, bias)]
    return F.instance_norm(inp, weight=flat[0], bias=flat[1], eps=eps)


def batch_norm(
    inp: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    training: bool = False,
    momentum: float = 0.9,
    eps: float = 1e-5,
    inplace: bool = True,
    compute_mode: str = "default",
    param_dim: str = "dim_1c11",
) -> Any:
    """Normalize each channel of ``inp``, (N, C, H, W), to mean 0 and variance 1; then scale and shift it.

    ``weight`` scales and ``bias`` shifts. In training, mean and variance are those of the batch, and the running ones
    are updated, with the unbiased variance; otherwise the running ones are used.

    Returns:
        The result; if ``inplace`` is False, also the new running mean and variance.

    Raises:
        AssertionError: ``training`` is False, and the running mean or variance is None.
    """
    require(training or running_mean is not None, "running_mean must be provided in inference mode")
    require(training or running_var is not None, "running_var must be provided in inference mode")
    if not training:
        return _normalized(inp, running_mean, running_var, weight, bias, eps)
    count, mean, variance = _own_moments(inp)
    result = _normalized(inp, mean, variance, weight, bias, eps)
    new = _running(running_mean, running_var, mean.detach(), variance.detach(), count, momentum)
    if not inplace:
        return result, *new
    _take(running_mean, running_var, *new)
    return result


def sync_batch_norm(
    inp: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.9,
    eps: float = 1e-5,
    eps_mode: str = "additive",
    group: Group = WORLD,
) -> Any:
    """Apply ``batch_norm`` with the mean and variance of all ranks' batches, whose sizes may differ.

    Every rank of ``group`` must call this.

    If ``eps_mode`` is ``"max"``, ``eps`` is the least variance instead of being added to it.

    Raises:
        AssertionError: ``eps_mode`` is neither "max" nor "additive".
        NotImplementedError: ``inp`` does not have 4 axes, and the group has several ranks.
    """
    require(eps_mode.lower() in ("max", "additive"), f"unknown eps_mode: {eps_mode}")
    largest = eps_mode.lower() == "max"
    if not largest and not (is_distributed() and training):
        return batch_norm(inp, running_mean, running_var, weight, bias, training=training, momentum=momentum, eps=eps)
    if inp.ndim != 4:
        raise NotImplementedError("sync_batch_norm for ndim != 4")
    if not training:
        return _normalized(inp, running_mean, running_var, weight, bias, eps, largest)
    count, total, squares = _sums(inp)
    if is_distributed():
        count, total, squares = _of_all_ranks(count, total, squares, group)
    mean, variance = _moments(count, total, squares)
    result = _normalized(inp, mean, variance, weight, bias, eps, largest)
    _take(
        running_mean,
        running_var,
        *_running(running_mean, running_var, mean.detach(), variance.detach(), count, momentum),
    )
    return result


def _of_all_ranks(count: Tensor, total: Tensor, squares: Tensor, group: Group) -> tuple[Tensor, Tensor, Tensor]:
    """Sum the three tensors over all ranks in one call."""
    channels = total.size
    flat = _joined([count, total, squares])
    whole: Tensor = all_reduce_sum(flat, group)
    return whole[0], whole[1 : channels + 1].reshape(total.shape), whole[channels + 1 :].reshape(total.shape)


@computes
def _joined(parts: list[Any]) -> Value:
    return torch.cat([part.reshape(-1) for part in parts])


@computes
def _own_moments(inp: Value) -> tuple[Value, Value, Value]:
    """Return each channel's number of elements, mean and variance."""
    value = inp.float()
    axes = [number for number in range(value.dim()) if number != 1]
    count = torch.tensor(float(value.numel() // value.shape[1]), device=value.device)
    return count, value.mean(axes, keepdim=True), value.var(axes, correction=0, keepdim=True)


@computes
def _sums(inp: Value) -> tuple[Value, Value, Value]:
    """Return each channel's number of elements, sum, and sum of squares."""
    value = inp.float()
    axes = [number for number in range(value.dim()) if number != 1]
    count = torch.tensor(float(value.numel() // value.shape[1]), device=value.device)
    return count, value.sum(axes, keepdim=True), (value * value).sum(axes, keepdim=True)


@computes
def _moments(count: Value, total: Value, squares: Value) -> tuple[Value, Value]:
    mean = total / count
    return mean, squares / count - mean * mean


@computes
def _normalized(
    inp: Value, mean: Any, variance: Any, weight: Any, bias: Any, eps: float, largest: bool = False
) -> Value:
    shape = [inp.shape[1] if number == 1 else 1 for number in range(inp.dim())]
    center, spread = mean.reshape(shape), variance.reshape(shape)
    width = (torch.clamp_min(spread, eps) if largest else spread + eps) ** -0.5
    result = (floating(inp) - center) * width
    result = result if weight is None else result * value_of(weight).reshape(shape)
    whole: Value = result if bias is None else result + value_of(bias).reshape(shape)
    return whole.to(inp.dtype)


def _running(
    running_mean: Tensor | None,
    running_var: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    count: Tensor,
    momentum: Any,
) -> tuple[Tensor | None, Tensor | None]:
    number = float(count.item())
    unbiased = variance * (number / max(number - 1, 1))
    return _moved(running_mean, mean, momentum), _moved(running_var, unbiased, momentum)


def _moved(running: Tensor | None, own: Tensor, momentum: Any) -> Tensor | None:
    if running is None:
        return None
    share = float(momentum)
    result: Tensor = running * share + own.reshape(running.shape) * (1 - share)
    return result.detach()


def _take(running_mean: Tensor | None, running_var: Tensor | None, mean: Tensor | None, var: Tensor | None) -> None:
    for running, new in ((running_mean, mean), (running_var, var)):
        if running is not None and new is not None:
            running[...] = new
