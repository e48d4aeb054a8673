"""The trials of ``collshim test`` on GPUs; the command itself runs where no kernels are modelled."""

from __future__ import annotations

import collshim
from collshim.communicator import Communicator
from collshim.launching.self_test import exchange, trials, try_collectives
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import Setting, among_gpus, device, values

require_model()


def on_own_gpu(comm: Communicator) -> int:
    return try_collectives(comm, str(device()))


def test_gpus_are_tried() -> None:
    assert {"threads on one cuda", "processes over NCCL"} <= {trial.name for trial in trials()}


def test_collectives_of_the_trials_pass_over_nccl() -> None:
    assert values(among_gpus(on_own_gpu, 2, setting=Setting(checks=True))) == [24, 24]


def test_collectives_of_the_trials_pass_between_threads_of_one_gpu() -> None:
    assert collshim.launch(exchange, 2, args=("cuda:0",), timeout=200) == [24, 24]
