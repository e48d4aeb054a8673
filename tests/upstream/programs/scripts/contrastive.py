"""Losses that gather the features of all ranks: open_clip's and lightly's."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from tests.upstream.programs import vision  # noqa: F401
from tests.upstream.programs.ranks import run_named

ROWS = 3


def features(size: int) -> tuple[Tensor, Tensor]:
    """Return all ranks' features of two kinds."""
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randn(2, ROWS * size, 8, generator=generator)
    return torch.nn.functional.normalize(first), torch.nn.functional.normalize(second)


def own_features(rank: int, size: int) -> tuple[Tensor, Tensor]:
    """Return this rank's features, which take gradients."""
    first, second = (whole[rank * ROWS : (rank + 1) * ROWS].clone().requires_grad_() for whole in features(size))
    return first, second


def clip(rank: int, size: int) -> object:
    """Take open_clip's loss in each mode; the mean over ranks is the loss of the whole batch."""
    from open_clip import ClipLoss

    found = []
    scale = torch.tensor(10.0)
    whole = ClipLoss()(*features(size), scale)
    for local, with_gradient in itertools.product((False, True), repeat=2):
        loss = ClipLoss(local_loss=local, gather_with_grad=with_gradient, rank=rank, world_size=size)
        first, second = own_features(rank, size)
        value = loss(first, second, scale)
        value.backward()
        mean = value.detach().clone()
        dist.all_reduce(mean)
        torch.testing.assert_close(mean / size, whole)
        assert first.grad is not None
        found.append([value.item(), float(first.grad.square().sum())])
    return found


def siglip(rank: int, size: int) -> object:
    """Take open_clip's SigLIP loss, whose features go from neighbour to neighbour, or are gathered or reduced."""
    from open_clip.loss import SigLipLoss

    found = []
    for kind in ("bidir", "shift", "reduce", "gather"):
        first, second = own_features(rank, size)
        loss = SigLipLoss(rank=rank, world_size=size, dist_impl=kind)
        value = loss(first, second, torch.tensor(10.0), torch.tensor(-10.0))
        value.backward()
        assert first.grad is not None
        assert second.grad is not None
        found.append([value.item(), float(first.grad.square().sum()), float(second.grad.square().sum())])
    assert all(abs(values[0] - found[0][0]) < 1e-4 for values in found)
    return found


def lightly(rank: int, size: int) -> object:
    """Take lightly's losses with gathered features."""
    from lightly import loss as losses

    found = {}
    for make in (losses.NTXentLoss, losses.BarlowTwinsLoss, losses.VICRegLoss, losses.DCLLoss, losses.TiCoLoss):
        first, second = own_features(rank, size)
        value = make(gather_distributed=True)(first, second)
        value.backward()
        assert first.grad is not None
        found[make.__name__] = [value.item(), float(first.grad.square().sum())]
    return found


USES: dict[str, Callable[[int, int], object]] = {"clip": clip, "siglip": siglip, "lightly": lightly}


if __name__ == "__main__":
    run_named(USES)
