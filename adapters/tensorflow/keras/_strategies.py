"""Keras's optimizers and losses under a strategy.

Each replica updates its copies with the sum of all replicas' gradients, which are clipped before the sum. A mean loss
of a batch is divided by the number of replicas, so that the sum over replicas is the mean of the global batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

import torch

from collshim.errors import ArgumentError, also
from collshim.tensorflow.distribute import context, stack
from collshim.tensorflow.distribute.reduce_op import ReduceOp
from collshim.tensorflow.gradient_tape import component_here
from collshim.tensorflow.tensor import plain

# For each optimizer, the Keras variables that it updates in place of tf.Variables, by the tf.Variables' ids.
_STANDING: WeakKeyDictionary[Any, dict[int, tuple[Any, Any]]] = WeakKeyDictionary()


def install() -> None:
    """Let optimizers sum gradients over the replicas, and losses scale their means; call this once."""
    base: Any = import_module("keras.src.optimizers.base_optimizer").BaseOptimizer
    parallel: Any = import_module("keras.src.backend.torch.optimizers.torch_parallel_optimizer").TorchParallelOptimizer
    base.apply = _applying(base.apply)
    _wrap_builds(base)
    for kind in (base, parallel):
        kind._backend_update_step = _summing(kind._backend_update_step)
    loss: Any = import_module("keras.src.losses.loss")
    loss.scale_loss_for_distribution = lambda value: value / _replicas() if _replicas() > 1 else value
    loss.unscale_loss_for_distribution = lambda value: value * _replicas() if _replicas() > 1 else value


def _replicas() -> int:
    return context.get_strategy().num_replicas_in_sync


def _applying(keras_apply: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``apply`` to support strategies, and ``tf.Variable``s."""

    @wraps(keras_apply)
    def apply(self: Any, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        given = self._trainable_variables if trainable_variables is None else list(trainable_variables)
        _require_place(self, given)
        updated = [variable if hasattr(variable, "_held") else _standing(self, variable) for variable in given]
        keras_apply(self, grads, None if trainable_variables is None else updated)
        for variable, standing in zip(given, updated, strict=True):
            if standing is not variable:
                component_here(variable).assign(plain(standing.value).detach())

    return apply


def _wrap_builds(kind: Any) -> None:
    """Let optimizers of this class and its subclasses be built on ``tf.Variable``s."""
    if "build" in vars(kind):
        kind.build = _building(kind.build)
    for below in kind.__subclasses__():
        _wrap_builds(below)


def _building(keras_build: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(keras_build)
    def build(self: Any, variables: Sequence[Any]) -> None:
        keras_build(self, [one if hasattr(one, "_held") else _standing(self, one) for one in variables])

    return build


def _standing(optimizer: Any, variable: Any) -> Any:
    """Return the Keras variable that an optimizer updates in place of a ``tf.Variable``, set to its value."""
    known = _STANDING.setdefault(optimizer, {})
    if id(variable) not in known:
        name = variable.name.partition(":")[0].replace("/", "_")
        keras_variable: Any = import_module("keras.src.backend").Variable
        known[id(variable)] = (variable, keras_variable(variable.numpy(), name=name))
    standing = known[id(variable)][1]
    component_here(standing._held).assign(component_here(variable).value().detach())
    return standing


def _summing(step: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(step)
    def update_step(self: Any, grads: Sequence[Any], trainable_variables: Sequence[Any], learning_rate: Any) -> Any:
        return step(self, _summed(list(grads)), trainable_variables, learning_rate)

    return update_step


def _summed(grads: list[Any]) -> list[Any]:
    """Return the sum of all replicas' gradients, on every replica."""
    if _replicas() == 1:
        return grads
    with torch.no_grad():
        summed: list[Any] = context.get_replica_context().all_reduce(ReduceOp.SUM, grads)
    return summed


def _require_place(optimizer: Any, variables: Sequence[Any]) -> None:
    """Refuse a step outside the strategy under which the optimizer and its variables were created.

    Raises:
        RuntimeError: the caller is in a different strategy, outside all strategies, or not in a replica.
        AssertionError: a variable and the optimizer were created under different strategies.
    """
    strategy = _strategy_of(optimizer._iterations)
    current = context.get_strategy() if context.get_strategy().extended._makes_variables else None
    if current is not strategy and current is not None:
        raise stack.ContextError(
            f"Mixing different tf.distribute.Strategy objects: {_named(current)} is not {_named(strategy)}, under "
            f"which the optimizer {optimizer.name} was made"
        )
    is_outside = current is None or context.get_replica_context() is None
    if strategy is not None and strategy.num_replicas_in_sync > 1 and is_outside:
        raise stack.ContextError(
            f"the optimizer {optimizer.name} was made under {_named(strategy)}: should be called in the function that "
            "strategy.run calls"
        )
    for variable in variables:
        if _strategy_of(variable) is not strategy:
            raise also(ArgumentError, AssertionError)(
                f"the variable {getattr(variable, 'path', variable.name)} was made under "
                f"{_named(_strategy_of(variable))}, should be made under {_named(strategy)}, as the optimizer "
                f"{optimizer.name}"
            )


def _strategy_of(variable: Any) -> Any:
    """Return the strategy of the copies of a variable, Keras's or TensorFlow's; None if it has none."""
    return getattr(getattr(variable, "_held", variable), "distribute_strategy", None)


def _named(strategy: Any) -> str:
    return "no strategy" if strategy is None else f"a {type(strategy).__name__}"
