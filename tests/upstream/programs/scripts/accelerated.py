"""Accelerate's Accelerator: training with gradient accumulation, gathering, reducing, objects, and saved states."""

from __future__ import annotations

import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather_object, set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.upstream.programs.ranks import run, show, weights
from tests.upstream.programs.training import small_model, whole_batch


def main(rank: int, size: int) -> None:
    """Train, and gather the predictions of an uneven data set."""
    set_seed(3)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    assert (accelerator.process_index, accelerator.num_processes) == (rank, size)
    model = small_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    data = TensorDataset(*whole_batch(0, 5))
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, 3))
    for inputs, targets in loader:
        with accelerator.accumulate(model):
            accelerator.backward(nn.functional.mse_loss(model(inputs), targets))
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    predictions = [accelerator.gather_for_metrics(model(inputs).detach()) for inputs, _ in loader]
    assert len(torch.cat(predictions)) == len(data)
    mean = accelerator.reduce(torch.tensor([float(rank)]), reduction="mean")
    padded = accelerator.pad_across_processes(torch.ones(rank + 1), dim=0)
    names = broadcast_object_list([tempfile.mkdtemp() if rank == 0 else None])
    accelerator.save_state(names[0])
    accelerator.wait_for_everyone()
    accelerator.load_state(names[0])
    found = gather_object([{"rank": rank}])
    show(rank, weights=weights(model), mean=mean, padded=padded, found=found, sum=float(torch.cat(predictions).sum()))


if __name__ == "__main__":
    run(main)
