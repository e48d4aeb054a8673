"""The tests' requirement: the simulated CUDA; and which of torch's engines for NCCL they run on."""

from __future__ import annotations

import os

import pytest
import torch

from tests.cuda_model import model

IS_NCCL2 = os.environ.get("COLLSHIM_NCCL") == "nccl2"


def require_model() -> None:
    """Skip the calling module unless torch's CUDA is the simulated one."""
    if not (model.is_there() and torch.cuda.is_available()):
        pytest.skip("torch's CUDA is not the simulated one here: make gpu-model", allow_module_level=True)
