"""Ignite's idist and engines, in an existing default group, or in one that idist makes."""

from __future__ import annotations

import sys
from typing import Any

import ignite.distributed as idist
import torch
from ignite.engine import Engine, Events
from ignite.metrics import Accuracy, RunningAverage
from torch import nn

from tests.upstream.programs.ranks import default_group, register, show, weights
from tests.upstream.programs.training import own_batch, small_model


def program() -> None:
    """Train with an engine, and use the collectives of idist."""
    rank, size = idist.get_rank(), idist.get_world_size()
    model = idist.auto_model(small_model())
    optimizer = idist.auto_optim(torch.optim.SGD(model.parameters(), lr=0.1))

    def step(engine: Engine, index: int) -> float:
        inputs, targets = own_batch(index, rank, size)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.item()

    trainer = Engine(step)
    RunningAverage(output_transform=lambda loss: loss).attach(trainer, "loss")
    seen: list[Any] = []
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda engine: seen.append(engine.state.metrics["loss"]))
    trainer.run(range(3), max_epochs=2)
    show(rank, weights=weights(model), seen=seen, **collectives(rank, size))


def collectives(rank: int, size: int) -> dict[str, Any]:
    """Return the results of idist's collectives, and of a metric that uses them."""
    accuracy = Accuracy()
    accuracy.update((torch.eye(4), torch.tensor([0, 1, 2, rank % 4])))
    found = {
        "accuracy": accuracy.compute(),
        "sum": idist.all_reduce(float(rank), op="SUM"),
        "max": idist.all_reduce(torch.tensor([rank]), op="MAX"),
        "gathered": idist.all_gather(torch.tensor([rank])),
        "texts": idist.all_gather(f"rank {rank}"),
        "objects": idist.all_gather({"rank": rank}),
        "sent": idist.broadcast(float(rank + 5), src=1),
        "text": idist.broadcast(f"rank {rank}" if rank == 0 else None, src=0, safe_mode=True),
        "parts": idist.all_gather_tensors_with_shapes(torch.ones(rank + 1), [[other + 1] for other in range(size)]),
    }
    idist.barrier()
    assert found["sum"] == sum(range(size))
    return found


def main() -> None:
    """Run the program in the named way."""
    backend, way = sys.argv[1:]
    register(backend)
    if way == "existing":
        with default_group(backend):
            program()
    else:
        with idist.Parallel(backend=backend) as parallel:
            parallel.run(lambda local_rank: program())


if __name__ == "__main__":
    main()
