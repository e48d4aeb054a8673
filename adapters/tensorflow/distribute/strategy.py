"""``tf.distribute.Strategy``: the methods common to all strategies, based on ``extended``, in which they differ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from collshim.communicator import Communicator
from collshim.errors import ArgumentValueError
from collshim.tensorflow import structures
from collshim.tensorflow.distribute import in_process, leaves, stack
from collshim.tensorflow.distribute.experimental import Options, ValueContext, timeout_of
from collshim.tensorflow.distribute.older_iterators import InputIterator
from collshim.tensorflow.distribute.reduce_op import ReduceOp, reduce_op_of
from collshim.tensorflow.distribute.scope import Scope
from collshim.tensorflow.distribute.values import DistributedValues


class RunOptions(NamedTuple):
    """Hints to ``Strategy.run``; they have no effect here."""

    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: bool = False
    experimental_xla_options: Any = None


class Strategy:
    """A distribution of a computation over replicas. Source: TensorFlow 2.21, reference manual and recorded results."""

    def __init__(self, extended: Extended) -> None:
        self._extended = extended

    @property
    def extended(self) -> Any:
        """Further methods, for authors of optimizers and the like: a ``StrategyExtended``."""
        return self._extended

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas, over all processes."""
        return self._extended._num_replicas

    @property
    def cluster_resolver(self) -> Any:
        """The resolver of the strategy's cluster, or None."""
        return self._extended._cluster_resolver

    def scope(self) -> Scope[Strategy]:
        """Return a context manager that makes this the thread's current strategy, in cross-replica context."""
        return Scope(self)

    def run(
        self,
        fn: Callable[..., Any],
        args: Any = (),
        kwargs: Mapping[str, Any] | None = None,
        options: RunOptions | None = None,
    ) -> Any:
        """Call ``fn`` once on every replica of this process, and return the results, leaf by leaf.

        Distributed values among the arguments are replaced by the replica's own component. With several replicas in
        this process, the leaves of the result are ``PerReplica``, except leaves that are the same object on all
        replicas; with one replica, the result is that of ``fn``.

        Raises:
            RuntimeError: it is called from a replica, or from the scope of a different strategy.
            ValueError: ``args`` is not a list or tuple.
            Exception: the first error that a replica raised.
        """
        stack.require_cross_replica(self)
        if not isinstance(args, list | tuple):
            raise ArgumentValueError(f"positional args must be a list or tuple, got {type(args)}")
        with self.scope():  # subclasses may extend it
            return self._extended._call_for_each_replica(_undecorated(fn), tuple(args), dict(kwargs or {}))

    def reduce(self, reduce_op: ReduceOp | str, value: Any, axis: int | tuple[int, ...] | None) -> Any:
        """Return the sum or mean over all replicas, and over ``axis`` if it is not None: one array in every process.

        A mean over an ``axis`` weights elements, not replicas: it is the total divided by the total count. Means of
        integers are float64. Under ``MirroredStrategy`` with several replicas, a value that is not distributed counts
        as the same on all replicas, so its MEAN is the value itself. With an ``axis``, a list or tuple is one tensor,
        whose first axis it is; without, each leaf is reduced.

        Raises:
            RuntimeError: it is called from a replica, or from the scope of a different strategy.
            ValueError: there is no such ``reduce_op``, or a value for SUM is not distributed.
            TypeError: ``axis`` has a wrong type, or a bool tensor is summed along it.
            tf.errors.InvalidArgumentError: the replicas' shapes or dtypes differ; there is no such axis, or it occurs
                twice; the dtype is bool, or, between workers, one that ``ReplicaContext.all_reduce`` refuses.
        """
        stack.require_cross_replica(self)
        op = reduce_op_of(reduce_op)
        timeout = self._extended._timeout(None)
        if axis is None:
            return self._extended._reduce(op, value, timeout)
        return self._extended._reduce_along(op, value, axis, timeout)

    def gather(self, value: Any, axis: int) -> Any:
        """Concatenate all replicas' values along ``axis``; return one array for each leaf, in every process.

        Under ``MirroredStrategy`` with several replicas, a value that is not distributed is copied.

        Raises:
            RuntimeError: it is called from a replica, or from the scope of a different strategy.
            NotImplementedError: a leaf is ``IndexedSlices``.
            TypeError: see ``ReplicaContext.all_gather``.
            tf.errors.InvalidArgumentError: see ``ReplicaContext.all_gather``.
        """
        stack.require_cross_replica(
            self,
            "tf.distribute.Strategy.gather method requires cross-replica context, "
            "use get_replica_context().all_gather() instead",
        )
        leaves.refuse_slices(structures.flatten(self._extended._local_results(value)), "gather")
        return self._extended._gather(value, axis, self._extended._timeout(None))

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Return each replica's part of ``value``, for the replicas of this process in order.

        For a value that is not distributed, it is a tuple with one element; for a nest, one nest per replica.
        """
        if isinstance(value, DistributedValues):
            return value.values
        return self._extended._local_results(value) if structures.is_nested(value) else (value,)

    def experimental_distribute_values_from_function(self, value_fn: Callable[[Any], Any]) -> Any:
        """Return ``value_fn(ValueContext)`` for each replica of this process, as ``PerReplica`` leaves.

        ``value_fn`` is called in the caller's context: no scope is entered. Strategies that never have more than one
        replica return its result.
        """
        return self._extended._distribute_values(value_fn)

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """Return a dataset whose elements have a part of a batch of ``dataset`` for each replica; batches are global.

        The default strategy returns ``dataset`` itself. See ``DistributedDataset``, and ``InputOptions``.

        Raises:
            NotImplementedError: the options ask for a pipeline for each replica.
        """
        return self._extended._distribute_dataset(dataset, options)

    def distribute_datasets_from_function(self, dataset_fn: Callable[[Any], Any], options: Any = None) -> Any:
        """Return a dataset from ``dataset_fn(InputContext)``; replicas take its elements in turn: batch per replica.

        ``dataset_fn`` is called once in each process, at once. If the options of a ``MirroredStrategy`` ask for a
        pipeline for each replica (PER_REPLICA), it is called once for each replica, which takes the elements of its own
        pipeline. See ``InputOptions``.

        Raises:
            NotImplementedError: the options ask for this with a different strategy.
            ValueError: the options place the dataset on a device, and are not PER_REPLICA.
        """
        return self._extended._distribute_datasets(dataset_fn, options)

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def make_dataset_iterator(self, dataset: Any) -> InputIterator:
        """Return an iterator over ``experimental_distribute_dataset(dataset)``, in TensorFlow's older form."""
        return InputIterator(self.experimental_distribute_dataset(dataset))

    def make_input_fn_iterator(self, input_fn: Callable[[Any], Any], replication_mode: Any = None) -> InputIterator:
        """Return an iterator over ``distribute_datasets_from_function(input_fn)``, in TensorFlow's older form."""
        return InputIterator(self.distribute_datasets_from_function(input_fn))

    def experimental_run(self, fn: Callable[..., Any], input_iterator: InputIterator | None = None) -> Any:
        """Call ``run`` on the next element of an iterator in TensorFlow's older form, or without arguments."""
        with self.scope():
            return self.run(fn, () if input_iterator is None else (input_iterator.get_next(),))

    def colocate_vars_with(self, colocate_with_variable: Any) -> Any:
        """Call ``extended.colocate_vars_with``, by its older name."""
        return self.extended.colocate_vars_with(colocate_with_variable)

    def unwrap(self, value: Any) -> tuple[Any, ...]:
        """Call ``experimental_local_results`` by its older name."""
        return self.experimental_local_results(value)

    def group(self, value: Any, name: str | None = None) -> Any:
        """Return ``value`` if it is a single leaf without a ``name``, and None otherwise: nothing waits to be run."""
        results = structures.flatten(list(self.experimental_local_results(value)))
        return results[0] if len(results) == 1 and name is None else None


def _undecorated(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls a ``tf.function`` so that it may synchronize; leave other functions unchanged."""
    found: Callable[..., Any] = getattr(fn, "run_in_replica", fn)
    return found


class Extended(ABC):
    """The differences between strategies: public methods, over abstract ones that each kind of strategy defines."""

    _cluster_resolver: Any = None
    _options: Options | None = None
    _communicator: Communicator | None = None
    _limits_dtypes = True  # as TensorFlow's collective operations do; its alternatives accept any
    _shares_variables = False  # whether such a variable exists once for all replicas
    _makes_variables = False  # whether a variable that is made under this strategy has a copy for each replica

    def __init__(self, container_strategy: Strategy) -> None:
        self._strategy = container_strategy
        self._devices: tuple[str, ...] = ("/job:localhost/replica:0/task:0/device:CPU:0",)
        self._num_replicas = 1
        self._local_replicas: Sequence[int] = (0,)

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The names of the devices of this process's replicas, in replica order."""
        return self._devices

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The names of the devices of variables: those of the replicas."""
        return self._devices

    @property
    def worker_devices_by_replica(self) -> list[list[str]]:
        """The names of the devices of each replica of this process."""
        return [[device] for device in self.worker_devices]

    @property
    def experimental_require_static_shapes(self) -> bool:
        """False: a replica's shapes may differ from one call to the next."""
        return False

    @property
    def experimental_should_init(self) -> bool:
        """True: this process creates its own variables."""
        return True

    @property
    def should_checkpoint(self) -> bool:
        """Whether this process is the first worker, which writes the checkpoints that are kept."""
        return self._local_replicas[0] == 0

    should_save_summary = should_checkpoint

    @property
    def experimental_between_graph(self) -> bool:
        """Whether replicas may be in other processes."""
        return self._communicator is not None

    @property
    def _num_replicas_in_sync(self) -> int:
        return self._num_replicas

    @property
    def _global_batch_size(self) -> bool:
        return True

    def _container_strategy(self) -> Strategy:
        return self._strategy

    def value_container(self, value: Any) -> Any:
        """Return the distributed variable of which ``value`` is a copy, or ``value`` itself if it is not a copy."""
        return getattr(value, "_container", value)

    def reduce_to(
        self,
        reduce_op: ReduceOp | str,
        value: Any,
        destinations: Any,
        options: Options | None = None,
    ) -> Any:
        """Return the sum or mean of ``value`` over all replicas, at ``destinations``.

        If the value is the same on all replicas of a ``MirroredStrategy`` (``Mirrored``, or not distributed), its MEAN
        is the value itself, for any destination.

        Args:
            reduce_op: see ``ReplicaContext.all_reduce``.
            value: a ``PerReplica``, an array, or slices.
            destinations: a distributed value, for a result on all its devices (a ``Mirrored`` if this process has
                several replicas), or the name of a device, for one array. Data does not move between devices here.
            options: see ``ReplicaContext.all_reduce``.

        Raises:
            RuntimeError: it is called from a replica.
            AssertionError: ``destinations`` is a list.
            ValueError: ``destinations`` is empty, or of a different kind.
        """
        stack.require_cross_replica(self._strategy)
        op = reduce_op_of(reduce_op)
        in_process.require_no_list(destinations)
        in_process.require_destinations(destinations)
        return self._reduce_to(op, value, destinations, self._timeout(options))

    def batch_reduce_to(
        self,
        reduce_op: ReduceOp | str,
        value_destination_pairs: Sequence[tuple[Any, Any]],
        options: Options | None = None,
    ) -> list[Any]:
        """Call ``reduce_to`` for each pair of a value and its destinations; return a list."""
        stack.require_cross_replica(self._strategy)
        return [
            self.reduce_to(reduce_op, value, destinations, options) for value, destinations in value_destination_pairs
        ]

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """Return a copy of ``tensor`` at ``destinations``: a ``Mirrored`` for several devices, one array for one.

        Args:
            tensor: an array, slices or a number, which becomes a tensor.
            destinations: see ``reduce_to``.

        Raises:
            RuntimeError: it is called from a replica.
            AssertionError: ``destinations`` is a list.
            ValueError: ``destinations`` is empty, or of a different kind.
        """
        stack.require_cross_replica(self._strategy)
        in_process.require_no_list(destinations)
        in_process.require_destinations(destinations)
        return in_process.place(in_process.copy_value(leaves.leaf_of(tensor, 0)), destinations)

    def _timeout(self, options: Options | None) -> float | None:
        if options is None and self._options is None:
            return None
        return timeout_of(options, self._options)

    def _local_index(self, replica_id: int) -> int:
        """Return the position of a replica of this process in the components of a distributed value."""
        return 0

    def _device(self, replica_id: int) -> str:
        return self._devices[self._local_index(replica_id)]

    @abstractmethod
    def _call_for_each_replica(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of ``Strategy.run``."""

    @abstractmethod
    def _create_variable(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        """Return a new variable of this strategy: the innermost creator of a scope, see ``variable_creator_scope``."""

    @abstractmethod
    def _reduce(self, op: ReduceOp, value: Any, timeout: float | None) -> Any:
        """Return the result of ``Strategy.reduce`` without an axis."""

    @abstractmethod
    def _reduce_along(self, op: ReduceOp, value: Any, axis: int | tuple[int, ...], timeout: float | None) -> Any:
        """Return the result of ``Strategy.reduce`` with an axis."""

    @abstractmethod
    def _gather(self, value: Any, axis: int, timeout: float | None) -> Any:
        """Return the result of ``Strategy.gather``."""

    @abstractmethod
    def _reduce_to(self, op: ReduceOp, value: Any, destinations: Any, timeout: float | None) -> Any:
        """Return the result of ``reduce_to``."""

    @abstractmethod
    def _local_results(self, value: Any) -> tuple[Any, ...]:
        """Return each replica's part of ``value``, for the replicas of this process."""

    @abstractmethod
    def _distribute_dataset(self, dataset: Any, options: Any) -> Any:
        """Return the result of ``Strategy.experimental_distribute_dataset``."""

    @abstractmethod
    def _distribute_datasets(self, dataset_fn: Callable[[Any], Any], options: Any) -> Any:
        """Return the result of ``Strategy.distribute_datasets_from_function``."""

    @abstractmethod
    def _distribute_values(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        """Return the result of ``Strategy.experimental_distribute_values_from_function``."""
