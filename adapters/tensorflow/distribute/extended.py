"""``tf.distribute.StrategyExtended``: the differences between strategies, with one replica as the base case.

A strategy with one replica in this thread (the default one, ``OneDeviceStrategy``, ``MirroredStrategy`` on one device,
``MultiWorkerMirroredStrategy``) calls functions in the caller's thread; ``MirroredStrategy`` overrides that with
threads.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch

from collshim.arrays import as_torch, like
from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow import distributed_variables, name_scopes, structures
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.data.dataset import Dataset
from collshim.tensorflow.distribute import collectives, dtypes, in_process, input_context, leaves, stack
from collshim.tensorflow.distribute.datasets import DistributedDataset, DistributedDatasetsFromFunction
from collshim.tensorflow.distribute.experimental import Options, ValueContext
from collshim.tensorflow.distribute.input_context import InputContext, InputOptions
from collshim.tensorflow.distribute.reduce_op import ReduceOp
from collshim.tensorflow.distribute.replica_context import ReplicaContext
from collshim.tensorflow.distribute.strategy import Extended
from collshim.tensorflow.distribute.values import DistributedValues, Mirrored, PerReplica, component, regroup, select
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.indexed_slices import IndexedSlices
from collshim.tensorflow.tensor import adopt


class StrategyExtended(Extended):
    """Further methods of a strategy; this base class has one replica and does not communicate."""

    _wraps_values = True
    _has_pipelines_for_replicas = False

    def _call_for_each_replica(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        replica = ReplicaContext(self._strategy, self._local_replicas[0])
        with stack.entered(self._strategy, replica):
            return fn(*select(0, args), **select(0, kwargs))

    def call_for_each_replica(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """Call ``Strategy.run``."""
        return self._strategy.run(fn, tuple(args), kwargs)

    def read_var(self, v: Any) -> Any:
        """Return a variable's value across replicas: for ON_READ, the copies' values, combined by its aggregation."""
        return v.value()

    def variable_created_in_scope(self, v: Any) -> bool:
        """Return whether a variable was made in this strategy's scope."""
        return getattr(v, "_strategy", None) is self._strategy

    def colocate_vars_with(self, colocate_with_variable: Any) -> AbstractContextManager[None]:
        """Return a context manager without effect, since data does not move.

        In TensorFlow, variables made in the block are placed with this one.

        Raises:
            RuntimeError: it is called outside of this strategy's scope.
            ValueError: the variable was not made in this strategy's scope.
        """
        stack.require_scope(self._strategy)
        if not self.variable_created_in_scope(colocate_with_variable):
            raise ArgumentValueError(
                "`colocate_vars_with` must only be passed a variable created in this tf.distribute.Strategy.scope(), "
                f"not: {colocate_with_variable}"
            )
        return nullcontext()

    def update(self, var: Any, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, group: bool = True) -> Any:
        """Call ``fn(copy, *args, **kwargs)`` for each copy of a variable in this process, across replicas.

        Distributed values among the arguments are replaced by the copy's component. In a replica, all replicas must
        call this; each copy gets its replica's arguments.

        Returns:
            With ``group``, the result of ``fn``, as a ``Mirrored`` if there are several copies; otherwise, for each
            leaf of the result, a tuple of the copies' leaves.

        Raises:
            RuntimeError: it is called in a different strategy.
            AssertionError: ``var`` is not a variable, or has no copies although the strategy's variables have.
        """
        if stack.is_in_replica():
            return self._replica_ctx_update(var, fn, args, kwargs, group)
        stack.require_cross_replica(self._strategy)
        distributed_variables.require_variable(var, self._makes_variables and not self._shares_variables)
        copies = var.values if isinstance(var, DistributedValues) else (var,)
        results = []
        with stack.entered(self._strategy, None):
            for place, copy in enumerate(copies):
                with stack.updating(place):
                    results.append(fn(copy, *select(place, tuple(args)), **select(place, dict(kwargs or {}))))
        if not group:
            whole = results[0] if len(results) == 1 else regroup(results, Mirrored)
            return structures.map_structure(self._strategy.experimental_local_results, whole)
        if len(results) == 1:
            return results[0]
        return regroup([result.value() if hasattr(result, "assign") else result for result in results], Mirrored)

    def non_slot_devices(self, var_list: Any) -> Any:
        """Return the names of the devices of values that optimizers keep once for all variables."""
        return self.parameter_devices

    def update_non_slot(
        self, colocate_with: Any, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, group: bool = True
    ) -> Any:
        """Call ``fn(*args, **kwargs)`` for each device of ``non_slot_devices``, across replicas; see ``update``.

        Raises:
            RuntimeError: it is called from a replica.
        """
        stack.require_cross_replica(self._strategy)
        count = len(colocate_with) if isinstance(colocate_with, list | tuple) else 1
        results = []
        with stack.entered(self._strategy, None):
            for place in range(count):
                with stack.updating(place):
                    results.append(fn(*select(place, tuple(args)), **select(place, dict(kwargs or {}))))
        whole = results[0] if count == 1 else regroup(results, Mirrored)
        return whole if group else structures.map_structure(self._strategy.experimental_local_results, whole)

    def _replica_ctx_all_reduce(self, reduce_op: Any, value: Any, options: Options | None = None) -> Any:
        """Call ``ReplicaContext.all_reduce`` of the calling replica."""
        return self._calling_replica().all_reduce(reduce_op, value, options)

    def _replica_ctx_update(
        self, var: Any, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, group: bool = True
    ) -> Any:
        """Call ``update`` from a replica, after all replicas have called this."""

        def merge(strategy: Any, *given: Any, **named: Any) -> Any:
            return self.update(var, fn, given, named, group)

        return self._calling_replica().merge_call(merge, tuple(args), kwargs)

    def _use_merge_call(self) -> bool:
        return True

    def _in_multi_worker_mode(self) -> bool:
        return self._communicator is not None

    def _group(self, value: Any, name: str | None = None) -> Any:
        return self._strategy.group(value, name)

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Dataset:
        """Return a dataset of the rows of arrays; a list of arrays counts as one array."""
        return Dataset.from_tensor_slices(numpy_input)

    def _calling_replica(self) -> ReplicaContext:
        replica: ReplicaContext | None = stack.current().replica_context
        if replica is None:
            raise stack.ContextError("Need to be inside `call_for_each_replica()`")
        return replica

    def _create_variable(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        """Return a new variable, with a copy for each replica that ``next_creator`` makes."""
        if not self._makes_variables or stack.current().strategy is not self._strategy:
            return next_creator(**kwargs)
        replica: ReplicaContext | None = stack.current().replica_context
        create = partial(next_creator, **kwargs)

        def make() -> Any:
            with stack.entered(self._strategy, None):
                return distributed_variables.create_distributed(self._strategy, create, replica, self._shares_variables)

        name = f"{name_scopes.current()}{kwargs['name'] or 'Variable'}"
        return make() if replica is None else replica._made(name, make)

    def _reduce(self, op: ReduceOp, value: Any, timeout: float | None) -> Any:
        return structures.map_structure(lambda leaf: in_process.copy_value(component(leaf, 0)), value)

    def _reduce_along(self, op: ReduceOp, value: Any, axis: int | tuple[int, ...], timeout: float | None) -> Any:
        """Sum along ``axis``, then over the replicas; a mean divides by the counts, summed in the same way."""
        parts = [
            adopt(part.__tf_tensor__()) if isinstance(part, IndexedSlices) else part for part in self._components(value)
        ]
        sums, counts = zip(*[_sum_and_count(part, axis) for part in parts], strict=True)
        total = self._reduce(ReduceOp.SUM, PerReplica(sums), timeout)
        if op is ReduceOp.MEAN:
            count = self._reduce(ReduceOp.SUM, PerReplica(counts), timeout)
            total = collectives.mean_of(total, int(count))
        convert = like(parts[0])
        return total if convert is None else convert(total)

    def _components(self, value: Any) -> list[Any]:
        """Return one component for each replica of this process, with numbers, lists and tuples as tensors."""
        if structures.is_nested(value):
            return [convert_to_tensor(part) for part in self._local_results(value)]
        return [leaves.leaf_of(value, place) for place in range(len(self._local_replicas))]

    def _gather(self, value: Any, axis: int, timeout: float | None) -> Any:
        return structures.map_structure(lambda leaf: in_process.copy_value(component(leaf, 0)), value)

    def _reduce_to(self, op: ReduceOp, value: Any, destinations: Any, timeout: float | None) -> Any:
        return self._reduce(op, value, timeout)

    def _local_results(self, value: Any) -> tuple[Any, ...]:
        places = range(len(self._local_replicas))
        return tuple(structures.map_structure(partial(component, index=place), value) for place in places)

    def _distribute_dataset(self, dataset: Any, options: InputOptions | None) -> Any:
        input_context.require_per_worker(options, "`distribute_datasets_from_function`.")
        return DistributedDataset(dataset, self)

    def _distribute_datasets(self, dataset_fn: Callable[[Any], Any], options: InputOptions | None) -> Any:
        only = "`distribute_datasets_from_function` of tf.distribute.MirroredStrategy"
        if not self._has_pipelines_for_replicas:
            input_context.require_per_worker(options, only)
        input_context.require_placeable(options)
        if input_context.is_per_replica(options):
            count = self._num_replicas
            pipelines = [dataset_fn(InputContext(count, replica, count)) for replica in range(count)]
            return DistributedDatasetsFromFunction(pipelines, self)
        workers = self._num_replicas // len(self._local_replicas)
        worker = self._local_replicas[0] // len(self._local_replicas)
        context = InputContext(workers, worker, self._num_replicas)
        return DistributedDatasetsFromFunction([dataset_fn(context)], self)

    def _distribute_values(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        values = [value_fn(ValueContext(replica, self._num_replicas)) for replica in self._local_replicas]
        return regroup(values, always_wrap=True) if self._wraps_values else values[0]


def _sum_and_count(value: Any, axis: int | tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    tensor = as_torch(value)
    dtypes.require_summed("reduce", tensor)
    axes = _axes_of(tensor, axis)
    count = torch.Size(tensor.shape[dimension] for dimension in axes).numel()
    terms = collectives.summable(tensor)
    return terms.sum(axes, dtype=terms.dtype).to(tensor.dtype) if axes else tensor, torch.tensor(count)


def _axes_of(tensor: torch.Tensor, axis: Any) -> tuple[int, ...]:
    """Return the axes of an int or a tuple of ints, counted from 0; bools are ints, as in TensorFlow."""
    if not isinstance(axis, int | tuple) or not all(isinstance(number, int | np.integer) for number in _several(axis)):
        raise ArgumentTypeError(f"reduce: axis is {axis!r}, should be an int, a tuple of ints or None")
    axes, dim = [int(number) for number in _several(axis)], tensor.dim()
    if not all(-dim <= number < dim for number in axes):
        raise invalid_argument(f"Invalid reduction dimension {axis} for input with {dim} dimensions.")
    dimensions = tuple(number % dim for number in axes)
    if len(set(dimensions)) < len(dimensions):
        raise invalid_argument(f"Invalid reduction arguments: axis {axis} names a dimension twice.")
    return dimensions


def _several(axis: Any) -> tuple[Any, ...]:
    return axis if isinstance(axis, tuple) else (axis,)
