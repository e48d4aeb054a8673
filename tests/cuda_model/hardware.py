"""The tests' requirement: the simulated CUDA."""

from __future__ import annotations

import pytest
import torch

from tests.cuda_model import model


def require_model() -> None:
    """Skip the calling module unless torch's CUDA is the simulated one."""
    if not (model.is_there() and torch.cuda.is_available()):
        pytest.skip("torch's CUDA is not the simulated one here: make gpu-model", allow_module_level=True)
