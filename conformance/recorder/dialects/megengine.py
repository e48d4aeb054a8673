"""MegEngine: nothing is recorded, because its collectives do not run on a CPU as shipped; calls are only replayed here.

Its recordings were converted by an earlier release. Another recorder had observed MegEngine's own Python, shape rules
and autograd, over a CPU transport of bytes instead of NCCL; ``provenance.json`` beside the recordings describes
this.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from collshim.conformance.recorder.asked import Asked
from collshim.conformance.recorder.dialects import Started, modules
from collshim.conformance.recorder.dialects.torch import TorchArrays

_MODULES = {
    "mge": "megengine",
    "dist": "megengine.distributed",
    "F": "megengine.functional.distributed",
    "autodiff": "megengine.autodiff",
}


class _MegEngine:
    arrays = TorchArrays(mutable=False, marks=False)  # its functions return new tensors; shared memory was not recorded
    runs_on_cpu = False
    limits = ""
    consequences = ""

    def version(self) -> str:
        return str(import_module("megengine").__version__)

    def place(self) -> tuple[int, int]:
        raise NotImplementedError("MegEngine's collectives do not run on a CPU: its recordings are converted")

    def enter(self, prefix: str, asked: Asked, rank: int) -> dict[str, Any]:
        names = modules(prefix, _MODULES)
        if asked.world != "bare":
            names["dist"].init_process_group("127.0.0.1", 29500, asked.size, rank, rank)
        return {**names, "np": np}

    def command(self, python: str, size: int, world: str, port: int, folder: Path) -> list[Started]:
        raise NotImplementedError("MegEngine's collectives do not run on a CPU: its recordings are converted")

    def leaves_unusable(self, classes: Sequence[str]) -> bool:
        return False


DIALECT = _MegEngine()
