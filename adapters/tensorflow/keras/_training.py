"""``model.fit``, ``evaluate`` and ``predict`` under strategies: each batch is divided among the replicas.

A model that was created under a strategy is trained under it. Source: TensorFlow 2.21 with Keras 3.15, on one to four
CPUs and on two workers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

import torch

from collshim.errors import ArgumentValueError
from collshim.tensorflow import structures
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.distribute import context
from collshim.tensorflow.distribute.datasets import distribute_batch
from collshim.tensorflow.distribute.reduce_op import ReduceOp
from collshim.tensorflow.distribute.values import DistributedValues, component
from collshim.tensorflow.gradient_tape import GradientTape
from collshim.tensorflow.keras import _datasets
from collshim.tensorflow.tensor import Tensor, adopt, plain


def install() -> None:
    """Let models be trained under strategies; call this once."""
    trainer: Any = import_module("keras.src.backend.torch.trainer").TorchTrainer
    _datasets.install()
    trainer.__init__ = _with_strategy(trainer.__init__)
    trainer.distribute_strategy = property(_strategy_of, doc="The strategy under which the model was made.")
    trainer._symbolic_build = _symbolic(trainer._symbolic_build)
    trainer._aggregate_additional_loss = _scaled(trainer._aggregate_additional_loss)
    trainer.train_step = _train_step(trainer.train_step)
    trainer.test_step = _test_step(trainer.test_step)
    for name in ("fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch"):
        setattr(trainer, name, _in_scope(getattr(trainer, name)))
    for name, reduce in (("train", _mean), ("test", _mean), ("predict", _concatenated)):
        make = f"make_{name}_function"
        setattr(trainer, make, _made_for_replicas(getattr(trainer, make), f"{name}_function", f"{name}_step", reduce))


def _strategy_of(model: Any) -> Any:
    """Return the strategy under which a model was created; the caller's if there was none."""
    return model._distribute_strategy or context.get_strategy()


def _with_strategy(init: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(init)
    def call(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        strategy = context.get_strategy()
        self._distribute_strategy = strategy if strategy.extended._makes_variables else None

    return call


def _in_scope(method: Callable[..., Any]) -> Callable[..., Any]:
    """Run a method of a model in the scope of its strategy."""

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._distribute_strategy is None or context.get_replica_context() is None:
            return method(self, *args, **kwargs)
        with self._distribute_strategy.scope():
            return method(self, *args, **kwargs)

    return call


def _symbolic(build: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the building of a model: it uses the shapes of the first replica's rows."""

    @wraps(build)
    def call(self: Any, iterator: Any = None, data_batch: Any = None) -> None:
        if data_batch is None and iterator is not None:
            _, _, (data_batch, *_) = next(iter(iterator))
        data_batch = structures.map_structure(lambda part: component(part, 0), data_batch)
        if any(isinstance(part, Tensor) and part.dim() == 0 for part in structures.flatten(data_batch)):
            raise ArgumentValueError(
                f"the dataset's first element has a component of shape (), should have batches: {data_batch!r}. Call "
                "dataset.batch(...)"
            )
        build(self, data_batch=data_batch)

    return call


def _scaled(aggregate: Callable[..., Any]) -> Callable[..., Any]:
    """Divide the layers' losses by the number of replicas, since the replicas' gradients are summed."""
    losses: Any = import_module("keras.src.losses.loss")

    @wraps(aggregate)
    def call(self: Any, loss: Any) -> Any:
        return losses.scale_loss_for_distribution(aggregate(self, loss))

    return call


def _train_step(step: Callable[..., Any]) -> Callable[..., Any]:
    """If there are several replicas, differentiate by a tape: each replica has its own copies of the weights."""

    @wraps(step)
    def call(self: Any, data: Any) -> Any:
        if self._distribute_strategy is None:
            return step(self, data)
        x, y, sample_weight = _unpacked(data)
        with GradientTape() as tape:
            y_pred = self(x, training=True) if self._call_has_training_arg else self(x)
            loss = self._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=True)
            _track(self, loss, x)
            optimizer: Any = self.optimizer
            loss = optimizer.scale_loss(loss) if optimizer else loss
        weights = self.trainable_weights
        if weights:
            gradients = tape.gradient(loss, weights)
            with torch.no_grad():
                optimizer.apply_gradients(list(zip(gradients, weights, strict=True)))
        else:
            warnings.warn("The model does not have any trainable weights.", stacklevel=2)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    return call


def _test_step(step: Callable[..., Any]) -> Callable[..., Any]:
    """Track the mean loss of a replica's rows, not its share of the sum over replicas."""

    @wraps(step)
    def call(self: Any, data: Any) -> Any:
        if self._distribute_strategy is None:
            return step(self, data)
        x, y, sample_weight = _unpacked(data)
        y_pred = self(x, training=False) if self._call_has_training_arg else self(x)
        _track(self, self._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False), x)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    return call


def _unpacked(data: Any) -> Any:
    utils: Any = import_module("keras.src.trainers.data_adapters.data_adapter_utils")
    return utils.unpack_x_y_sample_weight(data)


def _track(model: Any, loss: Any, x: Any) -> None:
    losses: Any = import_module("keras.src.losses.loss")
    rows = next(part for part in structures.flatten(x) if part is not None).shape[0]
    model._loss_tracker.update_state(losses.unscale_loss_for_distribution(loss), sample_weight=rows)


def _made_for_replicas(
    make: Callable[..., Any], name: str, step: str, reduce: Callable[[Any, Any], Any]
) -> Callable[..., Any]:
    """Wrap the creation of a model's function: it runs the step in all replicas, and combines results by ``reduce``."""

    @wraps(make)
    def call(self: Any, force: bool = False) -> None:
        if self._distribute_strategy is None:
            make(self, force)
            return
        if getattr(self, name) is not None and not force:
            return
        make(self, True)  # refuses settings that Keras on torch does not support

        def of_replica(batch: Any) -> Any:
            with torch.set_grad_enabled(step == "train_step"):
                return getattr(self, step)(batch)

        def of_all(data: Any) -> Any:
            strategy = self._distribute_strategy
            return reduce(strategy, strategy.run(of_replica, args=(_shared(strategy, data[0]),)))

        setattr(self, name, of_all)

    return call


def _shared(strategy: Any, batch: Any) -> Any:
    """Return a distributed batch, in which each replica has its rows."""
    parts = structures.flatten(batch)
    if any(isinstance(part, DistributedValues) for part in parts):
        return batch
    shared = iter(
        distribute_batch(strategy.extended, tuple(convert_to_tensor(part) for part in parts if part is not None))
    )
    return structures.pack_sequence_as(batch, [None if part is None else next(shared) for part in parts])


def _mean(strategy: Any, outputs: Any) -> Any:
    """Return the means of the replicas' results for one batch; all are reduced together."""
    means = strategy.extended._reduce(ReduceOp.MEAN, outputs, None)
    return structures.map_structure(lambda mean: adopt(plain(convert_to_tensor(mean)).detach()), means)


def _concatenated(strategy: Any, outputs: Any) -> Any:
    """Return the rows of all replicas, in replica order."""
    return structures.map_structure(lambda value: strategy.gather(value, axis=0), outputs)
