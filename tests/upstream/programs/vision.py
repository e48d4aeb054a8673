"""Make torchvision importable; importing this does it.

PyPI's torchvision is built for torch with CUDA. Beside a build of torch for the CPU its operators are missing, and its
import fails, and so does the import of the packages that use it if it is installed. No program calls its operators.
"""

from __future__ import annotations

import importlib
import sys

import torch


def _import() -> None:
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        for name in ("nms", "qnms"):
            _KEPT.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        importlib.import_module("torchvision")


_KEPT = torch.library.Library("torchvision", "FRAGMENT")
_import()
