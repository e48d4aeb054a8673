"""``tf.distribute.Strategy``: the methods that all strategies have, over their ``extended``, where they differ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from collshim.communicator import Communicator
from collshim.errors import ArgumentValueError
from collshim.tensorflow import structures
from collshim.tensorflow.distribute import in_process, leaves, stack
from collshim.tensorflow.distribute.experimental import Options, ValueContext, timeout_of
from collshim.tensorflow.distribute.reduce_op import ReduceOp, reduce_op_of
from collshim.tensorflow.distribute.scope import Scope
from collshim.tensorflow.distribute.values import DistributedValues


class RunOptions(NamedTuple):
    """Hints to ``Strategy.run``; they change nothing here."""

    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: bool = False
    experimental_xla_options: Any = None


class Strategy:
    """How a computation is spread over replicas. Source: TensorFlow 2.21, reference manual and recorded answers."""

    def __init__(self, extended: Extended) -> None:
        self._extended = extended

    @property
    def extended(self) -> Any:
        """Further methods, for those who write optimizers and the like: a ``StrategyExtended``."""
        return self._extended

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas there are, over all processes."""
        return self._extended._num_replicas

    @property
    def cluster_resolver(self) -> Any:
        """The resolver that the strategy has its cluster from, or None."""
        return self._extended._cluster_resolver

    def scope(self) -> Scope[Strategy]:
        """A context manager that makes this the current strategy of the thread, in cross-replica context."""
        return Scope(self)

    def run(
        self,
        fn: Callable[..., Any],
        args: Any = (),
        kwargs: Mapping[str, Any] | None = None,
        options: RunOptions | None = None,
    ) -> Any:
        """Call ``fn`` once on every replica of this process, and return what they returned, leaf by leaf.

        Distributed values among the arguments reach each replica as its own component. With several replicas
        in this process the leaves of the result are ``PerReplica``, except those that are the very same
        object on all of them; with one, it is what ``fn`` returned.

        Raises:
            RuntimeError: called from a replica, or from another strategy's scope.
            ValueError: ``args`` is no list or tuple.
            Exception: the first that a replica raised.
        """
        stack.require_cross_replica(self)
        if not isinstance(args, list | tuple):
            raise ArgumentValueError(f"positional args must be a list or tuple, got {type(args)}")
        with self.scope():  # which a subclass may have more to do for
            return self._extended._call_for_each_replica(_undecorated(fn), tuple(args), dict(kwargs or {}))

    def reduce(self, reduce_op: ReduceOp | str, value: Any, axis: int | tuple[int, ...] | None) -> Any:
        """The sum or mean over all replicas, and over ``axis`` of each where one is given; one array on every process.

        A mean over an ``axis`` weighs elements, not replicas: the total over the total count. Means of
        integers are float64. Under ``MirroredStrategy`` with several replicas a value that is not distributed
        is the same on all of them: its MEAN is itself.

        Raises:
            RuntimeError: called from a replica, or from another strategy's scope.
            ValueError: no such ``reduce_op``, or the SUM of a value that is not distributed.
            TypeError: an ``axis`` of another type, or a bool tensor summed along one.
            tf.errors.InvalidArgumentError: the replicas' shapes or dtypes differ, or there is no such axis, or it
                comes twice; bool, or, between workers, a dtype that ``ReplicaContext.all_reduce`` refuses.
        """
        stack.require_cross_replica(self)
        op = reduce_op_of(reduce_op)
        timeout = self._extended._timeout(None)
        if axis is None:
            return self._extended._reduce(op, value, timeout)
        return structures.map_structure(lambda leaf: self._extended._reduce_along(op, leaf, axis, timeout), value)

    def gather(self, value: Any, axis: int) -> Any:
        """All replicas' values behind each other along ``axis``; one array on every process, for each leaf of a nest.

        Under ``MirroredStrategy`` with several replicas a value that is not distributed is copied.

        Raises:
            RuntimeError: called from a replica, or from another strategy's scope.
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
        """What each replica of this process has of ``value``, in replica order.

        A value that is not distributed gives a tuple of one, a nest one nest per replica.
        """
        if isinstance(value, DistributedValues):
            return value.values
        return self._extended._local_results(value) if structures.is_nested(value) else (value,)

    def experimental_distribute_values_from_function(self, value_fn: Callable[[Any], Any]) -> Any:
        """``value_fn(ValueContext)`` for each replica of this process, as ``PerReplica`` leaves.

        ``value_fn`` is called in the caller's context: no scope is entered. Strategies that never have more than
        one replica return what ``value_fn`` did.
        """
        return self._extended._distribute_values(value_fn)

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """A dataset each element of which has one part of a batch of ``dataset`` for each replica: batch it globally.

        The default strategy gives ``dataset`` itself. See ``DistributedDataset``; ``options`` change nothing.
        """
        return self._extended._distribute_dataset(dataset)

    def distribute_datasets_from_function(self, dataset_fn: Callable[[Any], Any], options: Any = None) -> Any:
        """A dataset whose elements the replicas take in turn of ``dataset_fn(InputContext)``: batch it for a replica.

        ``dataset_fn`` is called once in each process, at once. ``options`` change nothing.
        """
        return self._extended._distribute_datasets(dataset_fn)

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def unwrap(self, value: Any) -> tuple[Any, ...]:
        """``experimental_local_results`` under its older name."""
        return self.experimental_local_results(value)

    def group(self, value: Any, name: str | None = None) -> Any:
        """``value`` where it is a single leaf that no ``name`` is given for; else None: nothing waits to be run."""
        results = structures.flatten(list(self.experimental_local_results(value)))
        return results[0] if len(results) == 1 and name is None else None


def _undecorated(fn: Callable[..., Any]) -> Callable[..., Any]:
    """What a ``tf.function`` was made of, bound to what that is bound to."""
    found = getattr(fn, "python_function", None)
    if found is None:
        return fn
    owner = getattr(fn, "__self__", None)
    return found if owner is None else partial(found, owner)


class Extended(ABC):
    """What strategies do differently: further public methods, over what each kind of strategy defines for itself."""

    _cluster_resolver: Any = None
    _options: Options | None = None
    _communicator: Communicator | None = None
    _limits_dtypes = True  # as TensorFlow's collective operations do; what it has in their place takes any

    _makes_variables = False  # of a copy for each replica, where one is made under this strategy

    def __init__(self, container_strategy: Strategy) -> None:
        self._strategy = container_strategy
        self._devices: tuple[str, ...] = ("/job:localhost/replica:0/task:0/device:CPU:0",)
        self._num_replicas = 1
        self._local_replicas: Sequence[int] = (0,)

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The names of the devices that this process's replicas run on, in replica order."""
        return self._devices

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The names of the devices that variables would lie on: those of the replicas."""
        return self._devices

    @property
    def experimental_require_static_shapes(self) -> bool:
        """False: a replica's shapes may differ from one call to the next."""
        return False

    def value_container(self, value: Any) -> Any:
        """The distributed variable that ``value`` is a copy of; else ``value`` itself."""
        return getattr(value, "_container", value)

    def reduce_to(
        self,
        reduce_op: ReduceOp | str,
        value: Any,
        destinations: Any,
        options: Options | None = None,
    ) -> Any:
        """The sum or mean of ``value`` over all replicas, left at ``destinations``.

        The MEAN of what is the same on all replicas of a ``MirroredStrategy``, ``Mirrored`` or not distributed, is
        itself, wherever it is to be left.

        Args:
            reduce_op: see ``ReplicaContext.all_reduce``.
            value: a ``PerReplica``, an array, or slices.
            destinations: a distributed value, for a result on all its devices (a ``Mirrored`` where this process
                has several replicas), or the name of a device, for one array. Nothing moves between devices here.
            options: see ``ReplicaContext.all_reduce``.

        Raises:
            RuntimeError: called from a replica.
            AssertionError: ``destinations`` is a list.
            ValueError: ``destinations`` is empty or something else.
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
        """``reduce_to`` for each pair of a value and its destinations, in a list."""
        stack.require_cross_replica(self._strategy)
        return [
            self.reduce_to(reduce_op, value, destinations, options) for value, destinations in value_destination_pairs
        ]

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """A copy of ``tensor`` at ``destinations``: a ``Mirrored`` for several devices, one array for one.

        Args:
            tensor: an array, slices or a number, which becomes a tensor.
            destinations: see ``reduce_to``.

        Raises:
            RuntimeError: called from a replica.
            AssertionError: ``destinations`` is a list.
            ValueError: ``destinations`` is empty or something else.
        """
        stack.require_cross_replica(self._strategy)
        in_process.require_no_list(destinations)
        in_process.require_destinations(destinations)
        return in_process.placed(in_process.owned(leaves.leaf_of(tensor, 0)), destinations)

    def _timeout(self, options: Options | None) -> float | None:
        return timeout_of(options, self._options)

    def _local_index(self, replica_id: int) -> int:
        """The place of a replica of this process in the components of a distributed value."""
        return 0

    def _device(self, replica_id: int) -> str:
        return self._devices[self._local_index(replica_id)]

    @abstractmethod
    def _call_for_each_replica(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What ``Strategy.run`` returns."""

    @abstractmethod
    def _variable(self, create: Callable[..., Any]) -> Any:
        """The variable that ``create`` makes, with a copy for each replica."""

    @abstractmethod
    def _reduce(self, op: ReduceOp, value: Any, timeout: float | None) -> Any:
        """What ``Strategy.reduce`` returns without an axis."""

    @abstractmethod
    def _reduce_along(self, op: ReduceOp, value: Any, axis: int | tuple[int, ...], timeout: float | None) -> Any:
        """What ``Strategy.reduce`` returns of one leaf with an axis."""

    @abstractmethod
    def _gather(self, value: Any, axis: int, timeout: float | None) -> Any:
        """What ``Strategy.gather`` returns."""

    @abstractmethod
    def _reduce_to(self, op: ReduceOp, value: Any, destinations: Any, timeout: float | None) -> Any:
        """What ``reduce_to`` leaves at ``destinations``."""

    @abstractmethod
    def _local_results(self, value: Any) -> tuple[Any, ...]:
        """``value`` as each replica of this process has it."""

    @abstractmethod
    def _distribute_dataset(self, dataset: Any) -> Any:
        """What ``Strategy.experimental_distribute_dataset`` returns."""

    @abstractmethod
    def _distribute_datasets(self, dataset_fn: Callable[[Any], Any]) -> Any:
        """What ``Strategy.distribute_datasets_from_function`` returns."""

    @abstractmethod
    def _distribute_values(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        """What ``Strategy.experimental_distribute_values_from_function`` returns."""
