"""TensorFlow: replicas on logical CPU devices of one process, or workers with one replica each."""

from __future__ import annotations

import json
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


class _TensorFlowArrays(OwnArrays):
    """``tf.Tensor``: eager and immutable."""

    path = "tensorflow"
    mutable = False

    def make(self, values: NDArray[Any], dtype: str, layout: str, grad: bool) -> Any:
        """Make a tensor."""
        plain = values if values.dtype == object else laid_out(values, "")
        tensor = self.module.constant(plain)
        return self.module.cast(tensor, self.module.bfloat16) if dtype == "bfloat16" else tensor

    def read_own(self, array: Any) -> tuple[str, NDArray[Any]]:
        wide = self.module.cast(array, self.module.float32) if array.dtype == self.module.bfloat16 else array
        return str(array.dtype.name), np.array(wide.numpy())

    def overlap(self, one: Any, other: Any) -> bool:
        """Return False, because overlap cannot be determined."""
        return False

    def dtype_name(self, value: object) -> str | None:
        """Return the name of a ``tf.DType``."""
        found: Any = value
        return str(found.name) if isinstance(found, self.module.DType) else None

    def gradient(self, function: Callable[[Any], Any], x: Any, dy: Any) -> Any:
        """Return the gradient of ``x`` if ``dy`` is the gradient of ``function(x)``."""
        with self.module.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x, output_gradients=dy)


class _TensorFlow:
    arrays = _TensorFlowArrays()
    runs_on_cpu = True
    limits = ""
    consequences = r"UnavailableError: "

    def version(self) -> str:
        return str(self.arrays.module.__version__)

    def place(self) -> tuple[int, int]:
        task = json.loads(os.environ.get("TF_CONFIG", "{}"))
        return (task["task"]["index"], len(task["cluster"]["worker"])) if task else (0, 1)

    def enter(self, prefix: str, asked: Asked, rank: int) -> dict[str, Any]:
        tf = modules(prefix, {"tf": "tensorflow"})["tf"]
        if not prefix and asked.world == "mirrored":
            device = tf.config.list_physical_devices("CPU")[0]
            tf.config.set_logical_device_configuration(device, [tf.config.LogicalDeviceConfiguration()] * asked.size)
        strategy = _strategy(tf, asked)
        gradient = (
            import_module("collshim.conformance.recorder.dialects.torch").ARRAYS if prefix else self.arrays
        ).gradient
        names = {"tf": tf, "np": np, "strategy": strategy, "gradient": gradient}
        return {**names, "run": lambda act: _run(tf, strategy, act)}

    def command(self, python: str, size: int, world: str, port: int, folder: Path) -> list[Started]:
        quiet = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2", "TF_ENABLE_ONEDNN_OPTS": "0"}
        if world != "multiworker":
            return [Started([python], quiet)]
        workers = [f"127.0.0.1:{port + index}" for index in range(size)]
        tasks = [
            json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": i}}) for i in range(size)
        ]
        return [Started([python], quiet | {"TF_CONFIG": task}) for task in tasks]

    def leaves_unusable(self, classes: Sequence[str]) -> bool:
        """Check for the error of a failed collective, which leaves its group unusable."""
        return classes[0].startswith("tensorflow.") or classes[0] == "RuntimeError"


def _strategy(tf: Any, asked: Asked) -> Any:
    if asked.world == "mirrored":
        return tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(asked.size)])
    if asked.world == "multiworker":
        return tf.distribute.MultiWorkerMirroredStrategy()
    return tf.distribute.OneDeviceStrategy("/cpu:0") if asked.world == "one device" else tf.distribute.get_strategy()


def _run(tf: Any, strategy: Any, act: Callable[[Any, int], Any]) -> Any:
    """Return the result of ``strategy.run`` for a function of the replica's context and number."""

    def replica() -> Any:
        context = tf.distribute.get_replica_context()
        return act(context, int(context.replica_id_in_sync_group))

    return strategy.run(replica)


DIALECT = _TensorFlow()
