"""Variables of strategies: one copy per replica of this process, synchronized when they are written or read.

Source: TensorFlow 2.21, ``tf.Variable`` in the scope of ``MirroredStrategy`` on two CPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

from collshim.errors import ArgumentError, ArgumentValueError, also
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.distribute import collectives, context, stack
from collshim.tensorflow.distribute.reduce_op import ReduceOp
from collshim.tensorflow.distribute.values import DistributedValues, Mirrored, PerReplica, component
from collshim.tensorflow.gradient_tape import component_here
from collshim.tensorflow.indexed_slices import IndexedSlices
from collshim.tensorflow.operators import Operators
from collshim.tensorflow.scattering import Scatters, require_slices
from collshim.tensorflow.tensor import Reference, Tensor, plain
from collshim.tensorflow.variable import Variable
from collshim.tensorflow.variable_modes import VariableAggregation, VariableSynchronization, reduce_op_for

_OF_THE_FIRST = (
    *("name", "shape", "dtype", "trainable", "synchronization", "aggregation", "device", "get_shape"),
    *("constraint", "initializer", "initial_value", "is_initialized"),
)


class DistributedVariable(DistributedValues, Operators, Scatters):
    """A variable with a copy for each replica of this process.

    In a replica, it stands for that replica's copy; across replicas, for the first copy, unless a subclass differs.
    """

    _is_distributed_variable = True  # so that it counts as a tf.Variable

    def __init__(self, strategy: Any, copies: Sequence[Variable]) -> None:
        self._strategy = strategy
        self._values: tuple[Any, ...] = tuple(copies)
        for copy, device in zip(copies, strategy.extended._devices, strict=False):
            copy._container, copy._strategy, copy._device = self, strategy, device
            if copy._synchronization is VariableSynchronization.AUTO:
                copy._synchronization = VariableSynchronization.ON_WRITE

    def __getattr__(self, name: str) -> Any:
        """Return ``name``, ``shape``, ``dtype``, ``aggregation`` and others of the first copy."""
        if name in _OF_THE_FIRST:
            return getattr(self._values[0], name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def distribute_strategy(self) -> Any:
        """The strategy in whose scope the variable was created."""
        return self._strategy

    def value(self) -> Tensor:
        """Return the value for the caller: its replica's, or the value across replicas."""
        found: Tensor = component_here(self).value()
        return found

    def _as_tensor(self) -> Tensor:
        return self.value()

    def read_value(self) -> Tensor:
        """Return ``value()``."""
        return self.value()

    def numpy(self) -> Any:
        """Return the value as a NumPy array."""
        return self.value().numpy()

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Set the value, combining the replicas' values by ``aggregation``; the result holds the new value."""
        return self._write("assign", value, read_value)

    def assign_add(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Add a value, combining the replicas' values by ``aggregation``; the result holds the new value."""
        return self._write("assign_add", value, read_value)

    def assign_sub(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtract a value, combining the replicas' values by ``aggregation``; the result holds the new value."""
        return self._write("assign_sub", value, read_value)

    def _write(self, method: str, value: Any, read_value: bool = True) -> Any:
        """Call ``method`` of one copy while ``extended.update`` updates it; otherwise call ``_write_all``."""
        if stack.updated() is not None:
            return getattr(component_here(self), method)(value)
        found = self._write_all(method, value, read_value)
        return found if read_value else None

    def _write_all(self, method: str, value: Any, read_value: bool) -> Any:
        raise NotImplementedError

    def _write_each(self, method: str, value: Any) -> Any:
        """Write each copy's component of the value; return the single copy, or a ``Mirrored`` of all values."""
        for place, copy in enumerate(self._values):
            getattr(copy, method)(component(value, place))
        if len(self._values) == 1:
            return self._values[0]
        return Mirrored(copy.value() for copy in self._values)

    def __getitem__(self, index: Any) -> Any:
        """Return a part of the value; its method ``assign`` sets this part of the copies, in a replica of its own."""
        part = self.value()[index]
        if self._is_mirrored() or self._is_used_alone():
            part.assign = partial(self._assign_part, index)
        return part

    def _is_used_alone(self) -> bool:
        """Return whether the caller uses one copy: its replica's, or the one that ``extended.update`` updates."""
        replica = context.get_replica_context()
        return stack.updated() is not None or (replica is not None and replica.strategy is self._strategy)

    def _assign_part(self, index: Any, value: Any, name: str | None = None) -> Any:
        for place, copy in enumerate([component_here(self)] if self._is_used_alone() else self._values):
            copy._assign_part(index, component(value, place))
        return self

    def ref(self) -> Reference:
        """Return a hashable reference to this variable."""
        return Reference(self)

    experimental_ref = ref

    @property
    def _primary(self) -> Variable:
        first: Variable = self._values[0]
        return first

    @property
    def _devices(self) -> tuple[str, ...]:
        return tuple(copy.device for copy in self._values)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Return a variable of the same strategy, with copies of the values."""
        found = memo[id(self)] = type(self)(self._strategy, [deepcopy(copy, memo) for copy in self._values])
        return found

    def _get(self) -> Any:
        """Return the caller's view: its replica's copy, or the value across replicas."""
        return component_here(self) if context.get_replica_context() is not None else self._get_cross_replica()

    def _get_cross_replica(self) -> Any:
        return self.value()

    def _get_on_device_or_primary(self) -> Any:
        return component_here(self)

    def _get_replica(self, replica_id: int) -> Any:
        return self._values[replica_id]

    def _is_mirrored(self) -> bool:
        return True


class MirroredVariable(DistributedVariable):
    """A variable whose copies are written together: all replicas' values are reduced before they are written.

    If ``aggregation`` is NONE, a replica writes only its own copy.
    """

    def _write_all(self, method: str, value: Any, read_value: bool) -> Any:
        replica = context.get_replica_context()
        if replica is None or replica.strategy is not self._strategy:
            return self._write_each(method, value)
        if self.aggregation is VariableAggregation.NONE:
            return getattr(component_here(self), method)(value)
        return replica.merge_call(partial(self._merge, method), (self._given(value),))

    def _given(self, value: Any) -> Any:
        """Return a replica's value in the form to be combined: a number stays a number if nothing is sent."""
        if isinstance(value, IndexedSlices) or (isinstance(value, bool | int | float) and not self._is_sent()):
            return value
        return convert_to_tensor(value, None if hasattr(value, "dtype") else self.dtype)

    def _is_sent(self) -> bool:
        return self._strategy.extended._communicator is not None

    def _scatter(self, change: str, sparse_delta: IndexedSlices) -> Any:
        require_slices(sparse_delta)
        alone = (VariableAggregation.NONE, VariableAggregation.ONLY_FIRST_REPLICA)
        if change in ("min", "max", "update") and self.aggregation not in alone:
            raise also(ArgumentError, NotImplementedError)(
                f"scatter_{change} is only supported for mirrored variable (variable created within certain "
                "`tf.distribute.Strategy` scope) with NONE or `ONLY_FIRST_REPLICA` aggregation, got: "
                f"{self.aggregation}."
            )
        return self._write(f"scatter_{change}", sparse_delta)

    def _merge(self, method: str, strategy: Any, value: Any) -> Any:
        return self._write_each(method, aggregate(strategy, self.aggregation, value))


class SyncOnReadVariable(DistributedVariable):
    """A variable whose copies are written by their replicas alone, and combined by ``aggregation`` when read."""

    def value(self) -> Tensor:
        """Return the calling replica's own value, or across replicas, all values combined by ``aggregation``."""
        if stack.updated() is not None:
            return super().value()
        if not context.in_cross_replica_context() and context.get_strategy() is self._strategy:
            return super().value()
        if self.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            return convert_to_tensor(aggregate(self._strategy, self.aggregation, self._all()))
        op = reduce_op_for(self.aggregation)
        found: Tensor = convert_to_tensor(self._strategy.extended._reduce(op, self._all(), None))
        return found

    def _scatter(self, change: str, sparse_delta: IndexedSlices) -> Any:
        raise also(ArgumentError, NotImplementedError)(
            f"Variables with `synchronization=ON_READ` doesn't support `scatter_{change}`"
        )

    def _is_mirrored(self) -> bool:
        return False

    def _all(self) -> PerReplica:
        return PerReplica(plain(copy.value()).detach() for copy in self._values)

    def _write_all(self, method: str, value: Any, read_value: bool) -> Any:
        replica = context.get_replica_context()
        if replica is not None and replica.strategy is self._strategy:
            return getattr(component_here(self), method)(value)
        if self.aggregation is VariableAggregation.SUM:
            if method != "assign":
                raise ArgumentValueError(
                    f"SyncOnReadVariable does not support `{method}` in cross-replica context when aggregation is set "
                    "to `tf.VariableAggregation.SUM`."
                )
            share = convert_to_tensor(value, None if hasattr(value, "dtype") else self.dtype)
            value = (share / self._strategy.num_replicas_in_sync).to(share.dtype)
        self._write_each(method, value)
        return self.value() if read_value else None


def aggregate(strategy: Any, aggregation: VariableAggregation, value: Any) -> Any:
    """Return all replicas' values combined by ``aggregation``, in every process.

    Raises:
        ValueError: a value for SUM is the same number, or the same tensor, on all replicas of this process.
    """
    if aggregation is not VariableAggregation.ONLY_FIRST_REPLICA:
        return strategy.extended._reduce(reduce_op_for(aggregation), value, None)
    first = component(value, 0)
    communicator = strategy.extended._communicator
    if isinstance(first, IndexedSlices):
        return _rows_of_the_first(strategy, first)
    if communicator is None:
        return first
    return convert_to_tensor(collectives.of_the_first(communicator, plain(convert_to_tensor(first)).detach()))


def _rows_of_the_first(strategy: Any, slices: IndexedSlices) -> Any:
    """Return the first replica's slices in every process: the others contribute no rows."""
    communicator = strategy.extended._communicator
    if communicator is None:
        return slices
    count = len(slices.indices) if communicator.rank == 0 else 0
    own = IndexedSlices(slices.values[:count], slices.indices[:count], slices.dense_shape)
    return strategy.extended._reduce(ReduceOp.SUM, own, None)


class AggregatingVariable(Variable):
    """A variable that exists once, and that the replicas write together.

    Args:
        variable: the variable that this one takes the place of; it has a different class.
    """

    def __init__(self, variable: Variable) -> None:
        vars(self).update(vars(variable))
        self._container, self._device = self, self._strategy.extended.parameter_devices[0]

    @property
    def distribute_strategy(self) -> Any:
        """The strategy in whose scope the variable was created."""
        return self._strategy

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Set the value, combining the replicas' values by ``aggregation``."""
        return self._write(super().assign, value, read_value)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Add a value, combining the replicas' values by ``aggregation``."""
        return self._write(super().assign_add, delta, read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtract a value, combining the replicas' values by ``aggregation``."""
        return self._write(super().assign_sub, delta, read_value)

    def _write(self, write: Callable[..., Any], value: Any, read_value: bool) -> Any:
        replica = context.get_replica_context()
        if replica is None or replica.strategy is not self._strategy:
            return write(component(value, 0), read_value=read_value)
        if self.aggregation is VariableAggregation.NONE:
            raise ArgumentValueError(
                "You must specify an aggregation method to update a AggregatingVariable in Replica Context. You can do "
                "so by passing an explicit value for argument `aggregation` to tf.Variable(..).e.g. "
                "`tf.Variable(..., aggregation=tf.VariableAggregation.SUM)`"
            )

        def merge(strategy: Any, given: Any) -> Any:
            return write(aggregate(strategy, self.aggregation, given), read_value=read_value)

        return replica.merge_call(merge, (value,))


def create_distributed(
    strategy: Any, create: Callable[..., Variable], replica: Any = None, shared: bool = False
) -> DistributedVariable | AggregatingVariable:
    """Create a variable of ``strategy``: the result of ``create``, and, unless ``shared``, copies for other replicas.

    If it is created in replicas, ``create`` is called in the context of the first one, ``replica``.

    All workers use the first worker's value.

    Raises:
        ValueError: ``aggregation`` is MEAN and the dtype is not floating-point.
    """
    with stack.entered(strategy, replica):
        first = create()
    if shared:
        return AggregatingVariable(first)
    if first.aggregation is VariableAggregation.MEAN and not first.dtype.is_floating_point:
        raise ArgumentValueError(
            "creating distributed tf.Variable with aggregation=MEAN and a non-floating dtype is not supported, please "
            "use a different aggregation or dtype"
        )
    first.assign(aggregate(strategy, VariableAggregation.ONLY_FIRST_REPLICA, first.value()))
    copies = [first]
    for place in range(1, len(strategy.extended._local_replicas)):
        name = f"{first.name.removesuffix(':0')}/replica_{place}/"
        copies.append(create(initial_value=plain(first.value()).detach(), name=name))
    on_read = first.synchronization is VariableSynchronization.ON_READ
    return (SyncOnReadVariable if on_read else MirroredVariable)(strategy, copies)


def require_variable(var: Any, is_copied: bool) -> None:
    """Refuse a value that is not a variable, or, with ``is_copied``, one that has no copy for each replica.

    Raises:
        AssertionError: it is not; the text shows it.
    """
    if not hasattr(var, "assign"):
        raise also(ArgumentError, AssertionError)(f"var is {var!r}, should be a tf.Variable")
    if is_copied and not hasattr(var, "distribute_strategy"):
        raise also(ArgumentError, AssertionError)(f"var is {var!r}, should be made in the scope of a strategy")
