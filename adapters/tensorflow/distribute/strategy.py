"""``tf.distribute.Strategy``: the face that all strategies share; what they do differently is in their ``extended``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from collshim.errors import ArgumentValueError
from collshim.tensorflow.distribute import context, leaves, nest
from collshim.tensorflow.distribute.reduce_op import ReduceOp, reduce_op_of
from collshim.tensorflow.distribute.scope import Scope
from collshim.tensorflow.distribute.values import DistributedValues

if TYPE_CHECKING:
    from collshim.tensorflow.distribute.extended import StrategyExtended


class RunOptions(NamedTuple):
    """Hints to ``Strategy.run``; they change nothing here."""

    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: bool = False
    experimental_xla_options: Any = None


class Strategy:
    """How a computation is spread over replicas. Source: TensorFlow 2.21, reference manual and recorded answers."""

    def __init__(self, extended: StrategyExtended) -> None:
        self._extended = extended

    @property
    def extended(self) -> StrategyExtended:
        """Further methods, for those who write optimizers and the like."""
        return self._extended

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas there are, over all processes."""
        return self._extended._num_replicas

    @property
    def cluster_resolver(self) -> Any:
        """What the strategy was told about the cluster, or None."""
        return self._extended._cluster_resolver

    def scope(self) -> Scope:
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
        context.require_cross_replica(self)
        if not isinstance(args, list | tuple):
            raise ArgumentValueError(f"positional args must be a list or tuple, got {type(args)}")
        return self._extended._call_for_each_replica(fn, tuple(args), dict(kwargs or {}))

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
        context.require_cross_replica(self)
        op = reduce_op_of(reduce_op)
        timeout = self._extended._timeout(None)
        if axis is None:
            return self._extended._reduce(op, value, timeout)
        return nest.map_structure(lambda leaf: self._extended._reduce_along(op, leaf, axis, timeout), value)

    def gather(self, value: Any, axis: int) -> Any:
        """All replicas' values behind each other along ``axis``; one array on every process, for each leaf of a nest.

        Under ``MirroredStrategy`` with several replicas a value that is not distributed is copied.

        Raises:
            RuntimeError: called from a replica, or from another strategy's scope.
            NotImplementedError: a leaf is ``IndexedSlices``.
            TypeError: see ``ReplicaContext.all_gather``.
            tf.errors.InvalidArgumentError: see ``ReplicaContext.all_gather``.
        """
        context.require_cross_replica(
            self,
            "tf.distribute.Strategy.gather method requires cross-replica context, "
            "use get_replica_context().all_gather() instead",
        )
        leaves.refuse_slices(nest.flatten(self._extended._local_results(value)), "gather")
        return self._extended._gather(value, axis, self._extended._timeout(None))

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """What each replica of this process has of ``value``, in replica order.

        A value that is not distributed gives a tuple of one, a nest one nest per replica.
        """
        if isinstance(value, DistributedValues):
            return value.values
        return self._extended._local_results(value) if nest.is_nested(value) else (value,)

    def experimental_distribute_values_from_function(self, value_fn: Callable[[Any], Any]) -> Any:
        """``value_fn(ValueContext)`` for each replica of this process, as ``PerReplica`` leaves.

        ``value_fn`` is called where the caller stands: no scope is entered. Strategies that never have more than
        one replica return what ``value_fn`` did.
        """
        return self._extended._distribute_values(value_fn)

    def unwrap(self, value: Any) -> tuple[Any, ...]:
        """``experimental_local_results`` under its older name."""
        return self.experimental_local_results(value)

    def group(self, value: Any, name: str | None = None) -> Any:
        """``value`` where it is a single leaf that no ``name`` is given for; else None: nothing waits to be run."""
        results = nest.flatten(list(self.experimental_local_results(value)))
        return results[0] if len(results) == 1 and name is None else None
