"""transformers' Trainer on a small model made here: training, evaluation, and resuming from a checkpoint.

With the argument "existing", the default group is made before; with "ddp-backend", TrainingArguments names the backend.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils.data import Dataset

from tests.upstream.programs import vision  # noqa: F401
from tests.upstream.programs.ranks import default_group, register, show, weights

from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed  # isort: skip


class Counting(Dataset[dict[str, Tensor]]):
    """Sequences that count upwards."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        tokens = torch.arange(index, index + 8) % 16
        return {"input_ids": tokens, "labels": tokens}


def metrics(prediction: Any) -> dict[str, float]:
    """Count what was gathered from all ranks."""
    found = np.asarray(prediction.predictions).argmax(-1)
    return {"rows": float(len(found)), "right": float((found[:, :-1] == prediction.label_ids[:, 1:]).mean())}


def trainer(folder: str, steps: int, **options: object) -> Trainer:
    """Return a Trainer of a new model."""
    set_seed(1)
    config = GPT2Config(vocab_size=16, n_positions=8, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    arguments = TrainingArguments(
        output_dir=folder,
        use_cpu=True,
        max_steps=steps,
        per_device_train_batch_size=2,
        per_device_eval_batch_size=2,
        gradient_accumulation_steps=2,
        learning_rate=1e-2,
        lr_scheduler_type="constant",
        save_strategy="steps",
        save_steps=3,
        logging_steps=1,
        report_to="none",
        disable_tqdm=True,
        seed=1,
        **options,
    )
    model = GPT2LMHeadModel(config)
    return Trainer(
        model=model, args=arguments, train_dataset=Counting(64), eval_dataset=Counting(9), compute_metrics=metrics
    )


def main() -> None:
    """Train six steps, and three of them again from a checkpoint."""
    backend, way = sys.argv[1:]
    register(backend)
    options = {"ddp_backend": backend} if way == "ddp-backend" else {}
    group: AbstractContextManager[object] = default_group(backend) if way == "existing" else nullcontext()
    with group:
        folder = os.environ["TMPDIR"] + "/trainer"
        whole = trainer(folder, 6, **options)
        loss = whole.train().training_loss
        found = whole.evaluate()
        assert found["eval_rows"] == 9
        again = trainer(tempfile.mkdtemp(), 6, **options)
        again.train(resume_from_checkpoint=f"{folder}/checkpoint-3")
        assert np.allclose(weights(again.model), weights(whole.model), rtol=1e-4)
        kept = {name: value for name, value in found.items() if name in ("eval_loss", "eval_rows", "eval_right")}
        show(dist.get_rank(), loss=loss, found=kept, weights=weights(whole.model))


if __name__ == "__main__":
    main()
