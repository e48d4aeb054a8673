"""Where these tests run: on the simulated CUDA alone."""

from __future__ import annotations

import pytest
import torch

from tests.cuda_model import model


def require_model() -> None:
    """Skip the module that says this where torch's CUDA is not the simulated one."""
    if not (model.is_there() and torch.cuda.is_available()):
        pytest.skip("torch's CUDA is not the simulated one here: make gpu-model", allow_module_level=True)
