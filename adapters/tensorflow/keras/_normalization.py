"""Keras's ``BatchNormalization(synchronized=True)``: the mean and the variance of the rows of all replicas.

Source: TensorFlow 2.21 with Keras 3 on two CPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from inspect import signature
from typing import Any

import torch

from collshim.tensorflow.distribute import context
from collshim.tensorflow.distribute.reduce_op import ReduceOp
from collshim.tensorflow.tensor import adopt, plain


def install() -> None:
    """Let layers and ``keras.ops.moments`` accept ``synchronized=True``; call this once."""
    nn: Any = import_module("keras.src.backend.torch.nn")
    nn.moments = _synchronizing(nn.moments)
    layer: Any = import_module("keras.src.layers.normalization.batch_normalization").BatchNormalization
    layer.__init__ = _accepting(layer.__init__)


def _accepting(keras_init: Callable[..., None]) -> Callable[..., None]:
    """Wrap ``__init__``, which accepts ``synchronized`` only on TensorFlow's own backend."""

    @wraps(keras_init)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature(keras_init).bind(self, *args, **kwargs)
        is_synchronized = bool(given.arguments.pop("synchronized", False))
        keras_init(*given.args, **given.kwargs)
        self.synchronized = is_synchronized

    vars(init)["__signature__"] = signature(keras_init)  # Keras reads the names of the arguments
    return init


def _synchronizing(keras_moments: Callable[..., Any]) -> Callable[..., Any]:
    is_symbolic: Any = import_module("keras.src.backend.common.symbolic_scope").in_symbolic_scope

    @wraps(keras_moments)
    def moments(x: Any, axes: Any, keepdims: bool = False, synchronized: bool = False) -> Any:
        replica = context.get_replica_context()
        if not synchronized or replica is None or is_symbolic():
            return keras_moments(x, axes, keepdims)
        value = plain(import_module("keras.src.backend").convert_to_tensor(x))
        places = [axes] if isinstance(axes, int) else list(axes)
        found = _moments_of_all(replica, value.float() if value.itemsize < 4 else value, places)
        if value.itemsize < 4:  # Keras computes them in float32
            limits = torch.finfo(torch.float16)
            found = [one.clamp(limits.min, limits.max).to(value.dtype) for one in found]
        return tuple(adopt(one if keepdims else one.squeeze(places)) for one in found)

    return moments


def _moments_of_all(replica: Any, value: torch.Tensor, axes: Sequence[int]) -> list[torch.Tensor]:
    """Return the mean and the variance of all replicas' rows, with gradients, on every replica."""
    rows = [value, value.square(), torch.ones_like(value)]
    sums = replica.all_reduce(ReduceOp.SUM, [one.sum(list(axes), keepdim=True) for one in rows])
    total, squares, counts = map(plain, sums)
    mean, mean_of_squares = (one / counts.clamp(min=1) for one in (total, squares))
    return [mean, (mean_of_squares - mean.square()).clamp(min=0)]
