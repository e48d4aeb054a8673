"""muon-optimizer: each rank updates some of the parameters, and the ranks exchange them."""

from __future__ import annotations

from collections.abc import Callable

import muon
import torch
from torch import Tensor, nn

from tests.upstream.programs.ranks import run_named, weights


def _matrices(*shapes: tuple[int, int]) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]


def _trained(matrices: list[nn.Parameter], optimizer: torch.optim.Optimizer) -> list[float]:
    """Take three steps towards zero, with the same gradients on every rank; return the matrices' squares."""
    for step in range(3):
        for place, matrix in enumerate(matrices):
            matrix.grad = matrix.detach() * (1 + step) + place
        optimizer.step()
    return weights(nn.ParameterList(matrices))


def _compared(matrices: list[nn.Parameter], copies: list[nn.Parameter]) -> list[float]:
    """Train over the ranks and on one rank; return the matrices' squares, which are the same."""
    found = _trained(matrices, muon.Muon(matrices, lr=0.02))
    alone = _trained(copies, muon.SingleDeviceMuon(copies, lr=0.02))
    torch.testing.assert_close(Tensor(found), Tensor(alone))
    return found


def one_shape(rank: int, size: int) -> object:
    """Train more matrices of one shape than there are ranks."""
    shapes = [(4, 4)] * (2 * size)
    return _compared(_matrices(*shapes), _matrices(*shapes))


def shapes(rank: int, size: int) -> object:
    """Train matrices of different shapes, which are gathered together."""
    different = [(4 + place, 6) for place in range(2 * size)]
    return _compared(_matrices(*different), _matrices(*different))


def auxiliary(rank: int, size: int) -> object:
    """Train matrices with Muon and vectors with Adam."""
    matrices, vectors = _matrices(*[(4, 6)] * size), [nn.Parameter(torch.ones(3) * place) for place in range(3)]
    groups = [{"params": matrices, "use_muon": True}, {"params": vectors, "use_muon": False}]
    return _trained([*matrices, *vectors], muon.MuonWithAuxAdam(groups))


USES: dict[str, Callable[[int, int], object]] = {
    "one-shape": one_shape,
    "shapes": shapes,
    "auxiliary": auxiliary,
}

if __name__ == "__main__":
    run_named(USES)
