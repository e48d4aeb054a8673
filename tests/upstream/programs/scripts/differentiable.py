"""diffdist: collectives and messages through which gradients flow."""

from __future__ import annotations

import diffdist.functional as differentiable
import torch

from tests.upstream.programs.ranks import run, show


def main(rank: int, size: int) -> None:
    """Differentiate through each function."""
    own = torch.tensor([rank + 1.0]).requires_grad_()
    places = [torch.zeros(1) for _ in range(size)]
    gathered = differentiable.all_gather(places, own)
    (torch.cat(list(gathered)) * (rank + 1)).square().sum().backward()
    assert own.grad is not None
    found = {"all_gather": own.grad.clone()}
    own.grad = None
    sent = differentiable.broadcast(own.clone(), src=0)
    (sent * (rank + 2)).sum().backward()
    if rank == 0:  # the other ranks' gradients hold what their dist.reduce left, over gloo partial sums
        assert own.grad is not None
        assert own.grad.item() == sum(range(2, size + 2))
        found["broadcast"] = own.grad.clone()
    own.grad = None
    if rank == 0:
        connector = differentiable.send(own * 2, dst=1)
        connector.backward(torch.tensor([]))
    elif rank == 1:
        received, _ = differentiable.recv(torch.zeros(1).requires_grad_(), src=0, inplace=False)
        (received * own).sum().backward()
    if rank < 2:
        assert own.grad is not None
        assert own.grad.item() == (4 if rank == 0 else 2)  # on both, the derivative of 2 x_0 x_1
    found["message"] = torch.zeros(1) if own.grad is None else own.grad.clone()
    show(rank, **found)


if __name__ == "__main__":
    run(main)
