"""Keras's conversion of arrays and variables to ``tf.Tensor``s."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from collshim.tensorflow.tensor import adopt


def install() -> None:
    """Let layers, losses and ``keras.ops`` accept ``tf.Variable``s with gradients, and return ``tf.Tensor``s."""
    core = import_module("keras.src.backend.torch.core")
    convert = core.convert_to_tensor

    def convert_to_tensor(x: Any, dtype: Any = None, sparse: Any = None, ragged: Any = None) -> Any:
        found = convert(x._as_tensor() if hasattr(x, "_as_tensor") else x, dtype, sparse, ragged)
        return adopt(found) if isinstance(found, torch.Tensor) else found

    modules: list[Any] = [core, import_module("keras.src.backend.torch"), import_module("keras.src.backend")]
    for module in modules:
        module.convert_to_tensor = convert_to_tensor
