"""Every surface by name."""

from __future__ import annotations

from collections.abc import Mapping

from tests.robustness.spelling import Surface
from tests.robustness.spellings import communicator, megengine, mindspore, oneflow, tensorflow, torch

SURFACES: Mapping[str, Surface] = {
    "communicator": communicator.SURFACE,
    "oneflow": oneflow.SURFACE,
    "torch": torch.SURFACE,
    "mindspore": mindspore.SURFACE,
    "tensorflow": tensorflow.SURFACE,
    "megengine": megengine.SURFACE,
}
