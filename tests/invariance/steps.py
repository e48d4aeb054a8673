"""Steps that are not programs one would write: to see what the command says of them."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard


def batch() -> Tensor:
    """Return 8 rows."""
    return torch.randn(8, 3, generator=torch.Generator().manual_seed(0))


def model(seed: int = 0) -> nn.Sequential:
    """Make a model; every call with the same seed returns the same parameters."""
    generator = torch.Generator().manual_seed(seed)
    made = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    for parameter in made.parameters():
        parameter.data.normal_(generator=generator)
    return made


def part(batch: Tensor) -> Tensor:
    """Return this rank's rows."""
    return batch.chunk(dist.get_world_size())[dist.get_rank()]


def average(made: nn.Module) -> None:
    """Average the gradients over the ranks."""
    for parameter in made.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()


def right(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Train rightly."""
    made = model()
    loss = made(part(batch)).square().mean()
    loss.backward()
    average(made)
    return loss, made


def not_run(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Return a loss whose backward pass was not run, on every rank of the whole batch."""
    made = model()
    return made(batch).square().mean(), made


def without_a_model(batch: Tensor) -> Tensor:
    """Train tensors that belong to no module, and return the loss alone."""
    weight = torch.ones(3, requires_grad=True)
    loss = (part(batch) @ weight).square().mean()
    loss.backward()
    assert weight.grad is not None
    dist.all_reduce(weight.grad)
    weight.grad.div_(dist.get_world_size())
    return loss


def untrained(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Return a loss that depends on no parameter."""
    made = model()
    loss = made(part(batch)).mul(0).sum()
    loss.backward()
    return loss, made


def unused(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Leave a layer out."""
    made = nn.ModuleDict({"used": model(), "unused": nn.Linear(2, 2)})
    loss = made["used"](part(batch)).square().mean()
    loss.backward()
    average(made)
    return loss, made


def unsteady(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Add other noise in every run."""
    made = model()
    loss = (made(part(batch)) + torch.randn(1, generator=torch.Generator().manual_seed(torch.seed()))).square().mean()
    loss.backward()
    average(made)
    return loss, made


def infinite(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Divide by zero."""
    made = model()
    loss = (made(part(batch)) / 0).square().mean()
    loss.backward()
    return loss, made


def failing(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Fail on several ranks."""
    if dist.get_rank() == 1:
        raise ValueError("the batch is too small")
    return right(batch)


def of_another_seed(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Begin with other parameters on two ranks than on one, the same on both."""
    made = model(dist.get_world_size())
    loss = made(part(batch)).square().mean()
    loss.backward()
    average(made)
    return loss, made


def masks_that_differ(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Drop other parts of a replicated activation on each rank."""
    made = model()
    torch.manual_seed(dist.get_rank())
    loss = made(batch).square().mean()
    loss.backward()
    return loss, made


def detached(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Lose the gradient of the first layer on several ranks."""
    made = model()
    hidden = made[0](part(batch))
    hidden = hidden.detach() if dist.get_world_size() > 1 else hidden
    loss = made[2](hidden).square().mean()
    loss.backward()
    average(made)
    return loss, made


def nothing(batch: Tensor) -> object:
    """Return what is neither a loss nor a model."""
    return object()


def adam_without_a_reduction(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Leave one bias out of the reduction, and take a step that depends on the sign of gradients alone."""
    made = model()
    optimizer = torch.optim.Adam(made.parameters(), lr=0.01)
    loss = made(part(batch)).square().mean()
    loss.backward()
    average(made[0])
    optimizer.step()
    return loss, made


def ending_apart(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Step the parameters on rank 0 alone."""
    loss, made = right(batch)
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1)
    if dist.get_rank() == 0:
        optimizer.step()
    return loss, made


def two_models(batch: Tensor) -> tuple[Tensor, dict[str, nn.Module]]:
    """Train two models whose parameters have the same names; the second is not reduced."""
    first, second = model(), model(1)
    loss = first(part(batch)).square().mean() + second(part(batch)).square().mean()
    loss.backward()
    average(first)
    return loss, {"first": first, "second": second}


def under_autocast(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Compute in 16 bits, with gradients of 32."""
    made = model()
    with torch.autocast("cpu", torch.bfloat16):
        loss = made(part(batch)).float().square().mean()
    loss.backward()
    average(made)
    return loss, made


def recurrent(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Train a network that drops between its layers."""
    torch.manual_seed(0)
    made = nn.LSTM(3, 4, num_layers=2, dropout=0.5, batch_first=True)
    loss = made(part(batch).unsqueeze(1))[0].square().mean()
    loss.backward()
    average(made)
    return loss, made


def by_name(batch: Tensor) -> tuple[dict[str, Tensor], nn.Module]:
    """Return the loss in a dict, as models of transformers do."""
    loss, made = right(batch)
    return {"loss": loss, "logits": made(batch)}, made


def sparse(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Keep a sparse gradient, of the rows of all ranks."""
    made = nn.Embedding(5, 2, sparse=True)
    made.weight.data.copy_(torch.arange(10.0).view(5, 2))
    loss = made(torch.arange(8) % 5).square().mean()
    loss.backward()
    return loss, made


def rate_by_ranks(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Sum the gradients, and divide the learning rate by the number of ranks."""
    made = model()
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1 / dist.get_world_size())
    loss = made(part(batch)).square().mean()
    loss.backward()
    for parameter in made.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
    return loss, made


def changed_by_decay_alone(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Change parameters by weight decay, without a gradient."""
    loss, made = untrained(batch)
    torch.optim.AdamW(made.parameters(), lr=0.1).step()
    return loss, made


def with_more_on_several(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Use a layer on several ranks that one rank does not have."""
    made = nn.ModuleDict({"first": model()})
    if dist.get_world_size() > 1:
        made["second"] = model(1)
    loss = torch.stack([one(batch).square().mean() for one in made.values()]).sum()
    loss.backward()
    return loss, made


def sharded_by_name(batch: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Return DTensors as gradients by name."""
    made: Any = fully_shard(model())
    loss = made(part(batch)).square().mean()
    loss.backward()
    return loss, {name: one.grad for name, one in made.named_parameters() if one.grad is not None}
