"""Lightning's Trainer and Fabric with the DDP strategy, which names the backend of the process group."""

from __future__ import annotations

import os
import sys
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from tests.upstream.programs import vision  # noqa: F401
from tests.upstream.programs.ranks import register, show, weights
from tests.upstream.programs.training import assert_same, own_batch, small_model, trained_alone, whole_batch

import lightning  # isort: skip
from lightning.fabric.strategies import DDPStrategy as FabricStrategy  # isort: skip
from lightning.pytorch.strategies import DDPStrategy  # isort: skip

SIZE = int(os.environ["WORLD_SIZE"])


class Module(lightning.LightningModule):  # type: ignore[misc]
    """The small model; logs the mean of the loss over all ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.model = small_model()

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        loss = nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.log("loss", loss, sync_dist=True, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch: list[Tensor], index: int) -> None:
        self.log("validation", nn.functional.mse_loss(self.model(batch[0]), batch[1]), sync_dist=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def with_trainer(backend: str) -> None:
    """Train two epochs, and save a checkpoint of each."""
    module = Module()
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=SIZE,
        strategy=DDPStrategy(process_group_backend=backend),
        max_epochs=2,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data = DataLoader(TensorDataset(*whole_batch(0, SIZE)), 2)
    trainer.fit(module, data, data)
    tested = trainer.validate(module, data, verbose=False)
    assert trainer.checkpoint_callback.best_model_path
    rows = trainer.strategy.reduce(torch.tensor(1.0), reduce_op="sum")
    assert rows.item() == SIZE
    logged = {name: float(value) for name, value in trainer.callback_metrics.items()}
    show(trainer.global_rank, weights=weights(module), logged=logged, tested=tested)


def with_fabric(backend: str) -> None:
    """Train with Fabric's loop, gather, broadcast and save."""
    fabric = lightning.Fabric(accelerator="cpu", devices=SIZE, strategy=FabricStrategy(process_group_backend=backend))
    fabric.launch()
    rank = fabric.global_rank
    model = small_model()
    wrapped, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    for step in range(3):
        inputs, targets = own_batch(step, rank, SIZE)
        with fabric.no_backward_sync(wrapped, enabled=False):
            fabric.backward(nn.functional.mse_loss(wrapped(inputs), targets))
        optimizer.step()
        optimizer.zero_grad()
    assert_same(model, trained_alone(SIZE))
    state: dict[str, Any] = {"model": wrapped, "step": 3}
    name = fabric.broadcast(os.path.join(os.environ["TMPDIR"], "state.ckpt"))
    fabric.save(name, state)
    fabric.barrier()
    fabric.load(name, state)
    gathered = fabric.all_gather(torch.tensor([rank]))
    mean = fabric.all_reduce(torch.tensor([float(rank)]), reduce_op="mean")
    show(rank, weights=weights(model), gathered=gathered, mean=mean, step=state["step"])


if __name__ == "__main__":
    register(sys.argv[1])
    {"trainer": with_trainer, "fabric": with_fabric}[sys.argv[2]](sys.argv[1])
