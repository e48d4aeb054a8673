"""OneFlow: ranks started by its own launcher. Its tensors have no address, so shared memory is detected by writing."""

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


class _OneFlowArrays(OwnArrays):
    """``oneflow.Tensor`` on the rank's own CPU device."""

    path = "oneflow"
    marks = True

    def make(self, values: NDArray[Any], dtype: str, layout: str, grad: bool) -> Any:
        """Make a tensor; OneFlow copies NumPy arrays, so its own operations make the layout."""
        tensor = self._lay_out(laid_out(values, ""), layout)
        tensor = tensor.to(self.module.bfloat16) if dtype == "bfloat16" else tensor
        return tensor.detach().requires_grad_() if grad else tensor

    def _lay_out(self, values: NDArray[Any], layout: str) -> Any:
        if layout == "transposed":
            return self.module.tensor(np.array(values.T, order="C")).transpose(0, 1)
        if layout == "strided":
            wide = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
            wide[..., ::2] = values
            return self.module.tensor(wide)[..., ::2]
        return self.module.tensor(values)

    def read_own(self, array: Any) -> tuple[str, NDArray[Any]]:
        dtype = str(array.dtype).replace("oneflow.", "")
        plain = array.detach()
        return dtype, np.array((plain.float() if dtype == "bfloat16" else plain).numpy())

    def overlap(self, one: Any, other: Any) -> bool:
        """Return whether writing into one changes the other; restore both afterwards."""
        if isinstance(one, np.ndarray) or isinstance(other, np.ndarray) or 0 in (one.numel(), other.numel()):
            return False
        dtype, kept = self.read(one)
        before = self.read(other)[1]
        flipped = ~kept if dtype == "bool" else kept + 1
        self._write(one, flipped)
        changed = not np.array_equal(before, self.read(other)[1])
        self._write(one, kept)
        return changed

    def _write(self, tensor: Any, values: NDArray[Any]) -> None:
        plain = tensor.detach()
        plain.copy_(self.module.tensor(np.array(values, order="C")).to(plain.dtype))

    def dtype_name(self, value: object) -> str | None:
        """Return the name of a ``oneflow.dtype``."""
        return str(value).replace("oneflow.", "") if isinstance(value, type(self.module.float32)) else None

    def gradient(self, function: Callable[[Any], Any], x: Any, dy: Any) -> Any:
        """Return ``x``'s gradient if ``dy`` is that of ``function(x)``; None if the result is not differentiable."""
        leaf = x.detach().clone().requires_grad_()
        y = function(leaf)
        if y is None or not y.requires_grad:
            return None
        (y * dy).sum().backward()
        return leaf.grad


class _OneFlow:
    arrays = _OneFlowArrays()
    runs_on_cpu = True
    limits = ""
    consequences = ""

    def version(self) -> str:
        return str(self.arrays.module.__version__)

    def place(self) -> tuple[int, int]:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

    def enter(self, prefix: str, asked: Asked, rank: int) -> dict[str, Any]:
        arrays = self.arrays if not prefix else import_module("collshim.conformance.recorder.dialects.torch").ARRAYS
        return {**modules(prefix, {"flow": "oneflow"}), "np": np, "gradient": arrays.gradient}

    def command(self, python: str, size: int, world: str, port: int, folder: Path) -> list[Started]:
        launch = ["-m", "oneflow.distributed.launch", "--nproc_per_node", str(size), "--master_port", str(port)]
        quiet = {"OMP_NUM_THREADS": "1", "GLOG_minloglevel": "2"}
        return [Started([python, *launch, "--logdir", str(folder / "logs")], quiet)]

    def leaves_unusable(self, classes: Sequence[str]) -> bool:
        """Return whether the error may have occurred during an exchange."""
        return classes[0] in ("RuntimeError", "oneflow._oneflow_internal.exception.Exception")


DIALECT = _OneFlow()
