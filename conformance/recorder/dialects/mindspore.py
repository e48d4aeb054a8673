"""MindSpore: ranks started by msrun, on the CPU backend."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collshim.conformance.recorder.asked import Asked
from collshim.conformance.recorder.dialects import OwnArrays, Started, modules
from collshim.conformance.recorder.trees import laid_out

_MODULES = {
    "ms": "mindspore",
    "comm": "mindspore.communication",
    "cf": "mindspore.communication.comm_func",
    "ops": "mindspore.ops",
    "dist": "mindspore.mint.distributed",
    "opc": "mindspore.ops.communication",
}


class _MindSporeArrays(OwnArrays):
    """``mindspore.Tensor`` on the CPU."""

    path = "mindspore"

    def make(self, values: NDArray[Any], dtype: str, layout: str, grad: bool) -> Any:
        """Make a tensor; MindSpore's have one layout, and do not record that they require a gradient."""
        tensor = self.module.Tensor(laid_out(values, ""))
        return tensor.astype(self.module.bfloat16) if dtype == "bfloat16" else tensor

    def read_own(self, array: Any) -> tuple[str, NDArray[Any]]:
        dtype = str(array.dtype).lower()
        wide = array.astype(self.module.float32) if dtype == "bfloat16" else array
        return dtype, np.array(wide.asnumpy())

    def overlap(self, one: Any, other: Any) -> bool:
        """Return whether both begin at one address; in MindSpore few functions make views."""
        if isinstance(one, np.ndarray) or isinstance(other, np.ndarray) or 0 in (one.size, other.size):
            return False
        return bool(one.data_ptr() == other.data_ptr())

    def dtype_name(self, value: object) -> str | None:
        """Return the name of a ``mindspore.dtype``."""
        return str(value).lower() if type(value).__module__ == "mindspore._c_expression.typing" else None

    def gradient(self, function: Callable[[Any], Any], x: Any, dy: Any) -> Any:
        """Return the gradient of ``x`` if ``dy`` is the gradient of ``function(x)``."""
        return self.module.grad(lambda value: (function(value) * dy).sum())(x)


class _MindSpore:
    arrays = _MindSporeArrays()
    runs_on_cpu = True
    limits = (
        r"unregistered|Unsupported op|Kernel select failed|kernelmod|only support .* on CPU|Select CPU operator"
        r"|group hccl_world_group does not exist|AllReduce failed|Broadcast failed|Launch kernel failed"
    )
    consequences = ""

    def version(self) -> str:
        return str(self.arrays.module.__version__)

    def place(self) -> tuple[int, int]:
        return int(os.environ["RANK_ID"]), int(os.environ["MS_WORKER_NUM"])

    def enter(self, prefix: str, asked: Asked, rank: int) -> dict[str, Any]:
        arrays = self.arrays if not prefix else import_module("collshim.conformance.recorder.dialects.torch").ARRAYS
        names = modules(prefix, _MODULES)
        names["comm"].init("mccl")
        if not prefix and asked.world == "alias":  # functions without a group argument use this group, which CPU lacks
            names["comm"].create_group("hccl_world_group", list(range(asked.size)))
        return {**names, "np": np, "gradient": arrays.gradient}

    def command(self, python: str, size: int, world: str, port: int, folder: Path) -> list[Started]:
        where = Path(python).parent
        path = {"PATH": os.pathsep.join((str(where), os.environ.get("PATH", ""))), "GLOG_v": "3"}
        options = [f"--worker_num={size}", f"--local_worker_num={size}", f"--master_port={port}", "--join=True"]
        return [Started([str(where / "msrun"), *options, f"--log_dir={folder / 'logs'}"], path)]

    def leaves_unusable(self, classes: Sequence[str]) -> bool:
        """Return False: its errors are raised before anything is sent, and calls with other errors run alone."""
        return False


DIALECT = _MindSpore()
