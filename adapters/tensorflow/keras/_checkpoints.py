"""Keras's objects in ``tf.train.Checkpoint``: their variables, including those that they create later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any

from collshim.tensorflow import waiting
from collshim.tensorflow.train import trackable

_OWN = ("_trainable_variables", "_non_trainable_variables", "_seed_generators")


def install() -> None:
    """Let checkpoints save Keras's objects; call this once."""
    layer: Any = import_module("keras.src.layers.layer").Layer
    optimizer: Any = import_module("keras.src.optimizers.base_optimizer").BaseOptimizer
    metric: Any = import_module("keras.src.metrics.metric").Metric
    seeds: Any = import_module("keras.src.random.seed_generator").SeedGenerator
    trackable.register(layer, _held_by_layer)
    trackable.register(optimizer, lambda one: {"_variables": list(one.variables)})
    trackable.register(metric, lambda one: {"_variables": list(one.variables)})
    trackable.register(seeds, lambda one: {"state": one.state})
    layer._post_build = _then_restoring(layer._post_build)
    _wrap_builds(optimizer)


def _wrap_builds(kind: Any) -> None:
    """Wrap the methods by which optimizers of this class and its subclasses create variables."""
    if "build" in vars(kind):
        kind.build = _then_restoring(kind.build)
    for below in kind.__subclasses__():
        _wrap_builds(below)


def _held_by_layer(layer: Any) -> Mapping[str, Any]:
    """Return a layer's own variables and layers, and the optimizer of a compiled model.

    The inputs of a model are left out: a ``Sequential`` may be built, and so have its input, only later.
    """
    found: dict[str, Any] = {name: list(getattr(layer, name, ())) for name in _OWN}
    found["_layers"] = [below for below in layer._layers if not hasattr(below, "_input_tensor")]
    compiled = getattr(layer, "optimizer", None)
    return found if compiled is None else {**found, "optimizer": compiled}


def _then_restoring(make: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method that creates variables, so that pending restorations set their values."""

    @wraps(make)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = make(self, *args, **kwargs)
        waiting.restore_new()
        return found

    return call
