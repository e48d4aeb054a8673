"""``tf.distribute.ReplicaContext``: the operations between one replica and the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic, sleep
from types import TracebackType
from typing import Any

import torch
from torch import Tensor

from collshim.arrays import as_torch
from collshim.communicator import Communicator
from collshim.tensorflow import structures
from collshim.tensorflow.distribute import collectives, dtypes, sparse, stack
from collshim.tensorflow.distribute.experimental import Options
from collshim.tensorflow.distribute.leaves import leaves_of, refuse_slices
from collshim.tensorflow.distribute.reduce_op import ReduceOp, reduce_op_of
from collshim.tensorflow.distribute.strategy import Strategy
from collshim.tensorflow.distribute.values import select
from collshim.tensorflow.tensor import Tensor as EagerTensor
from collshim.tensorflow.tensor import adopt

_TENSORS = (Tensor, EagerTensor)
_PAUSE = 0.005


class ReplicaContext:
    """One replica of a strategy, returned by ``tf.distribute.get_replica_context()`` inside ``Strategy.run``.

    Source: TensorFlow 2.21, its reference manual and recorded results.
    """

    def __init__(self, strategy: Strategy, replica_id_in_sync_group: int | Tensor) -> None:
        self._strategy = strategy
        self._extended = strategy.extended
        self._replica_id = int(replica_id_in_sync_group)
        self._entered: list[int] = []

    def __enter__(self) -> ReplicaContext:
        """Make the caller run in this replica: for strategies that a program defines."""
        self._entered.append(stack.enter(self._strategy, self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        stack.leave(self._entered.pop())

    def all_gather(self, value: Any, axis: int, options: Options | None = None) -> Any:
        """Gather, for each leaf of ``value``, all replicas' leaves on every replica, concatenated along ``axis``.

        For leaves of shape ``(2, 3)`` and ``(5, 3)``, the result along axis 0 is ``(7, 3)``: leaves are in replica
        order, their lengths along ``axis`` may differ, and dtype and structure do not change. With one replica, the
        result is a copy of the value, without checks. The gradient of a leaf is this replica's part of the sum of all
        replicas' gradients of the result; each replica must take part in the backward. Integers have no gradient.

        Args:
            value: an array or a nest of them, with the same structure on all replicas, or a ``DistributedValues``. The
                dtype is float16, float32, float64, int32 or int64; it may be any dtype with one replica, or under a
                ``MirroredStrategy`` with ``cross_device_ops``.
            axis: the number of an axis, from 0 to the number of axes minus 1; negative numbers are refused.
            options: its ``timeout_seconds`` limits the wait; the rest has no effect.

        Raises:
            RuntimeError: it is not called from this replica, or is called in a nested ``tf.function``.
            AssertionError: under ``MirroredStrategy``, the replicas' nests have different numbers of leaves.
            NotImplementedError: a leaf is ``IndexedSlices``.
            TypeError: a leaf has a different dtype; nothing was sent.
            tf.errors.InvalidArgumentError: a leaf is a scalar, or has no such axis (also ValueError); the leaves' other
                axes, or, under ``MirroredStrategy``, the axes passed, differ between replicas.
        """
        self._require_place()
        if type(value) in _TENSORS:
            return self._gathered([value], axis, options)[0]
        leaves = self._leaves(value)
        refuse_slices(leaves, "all_gather")
        return structures.pack_sequence_as(value, self._gathered(leaves, axis, options))

    def _gathered(self, leaves: list[Any], axis: int, options: Options | None) -> list[Any]:
        extended = self._extended
        timeout, communicator = extended._timeout(options), self._communicator()
        if communicator is None:
            return collectives.copies(leaves)
        tensors = [as_torch(leaf) for leaf in leaves]
        if extended._limits_dtypes and any(tensor.dtype not in dtypes.GATHERED for tensor in tensors):
            dtypes.require_gathered("all_gather", tensors, communicator.rank, communicator.size)
        if type(axis) is not int or any(not 0 <= axis < tensor.dim() for tensor in tensors):
            axis = collectives.axis_of_all(communicator, tensors, axis)
        self._agree("all_gather", len(leaves), axis)
        return collectives.all_gather(communicator, leaves, tensors, axis, timeout)

    def all_reduce(self, reduce_op: ReduceOp | str, value: Any, options: Options | None = None) -> Any:
        """Reduce, for each leaf of ``value``, all replicas' leaves to their sum or mean, on every replica.

        Shapes, structure and dtype do not change, except that the mean of integers over two or more replicas is
        float64. With one replica, the result is a copy of the value. The result for ``IndexedSlices`` is all replicas'
        rows, concatenated. The gradient is the same reduction of the replicas' gradients: their sum for SUM, and their
        mean for MEAN. Each replica must take part in the backward. Integers have no gradient, and a nest with
        ``IndexedSlices`` has none.

        Args:
            reduce_op: ``tf.distribute.ReduceOp.SUM``, ``MEAN``, or their names in upper or lower case.
            value: an array, ``IndexedSlices`` or a nest of them, with the same structure on all replicas. The dtype of
                arrays is bfloat16, float16, float32, float64, int32 or int64; it may be any dtype with one replica, and
                any but bool under a ``MirroredStrategy`` with ``cross_device_ops``.
            options: its ``timeout_seconds`` limits the wait; the rest has no effect.

        Raises:
            RuntimeError: it is not called from this replica, or is called in a nested ``tf.function``.
            AssertionError: under ``MirroredStrategy``, the replicas' nests have different numbers of leaves.
            ValueError: there is no such ``reduce_op``.
            tf.errors.InvalidArgumentError: a leaf has a different dtype (also ValueError; nothing was sent), or the
                replicas' shapes differ.
        """
        self._require_place()
        op = reduce_op_of(reduce_op)
        leaves = self._leaves(value)
        return structures.pack_sequence_as(value, self._reduced(op, leaves, self._extended._timeout(options)))

    def merge_call(
        self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call ``merge_fn(strategy, *args, **kwargs)`` once, across the replicas, when all of them have called this.

        Under ``MirroredStrategy`` with several replicas, each argument is a ``PerReplica`` of the replicas' arguments;
        otherwise it is this replica's own argument. On every replica, its component of a distributed result is
        returned, and any other result unchanged.

        Raises:
            RuntimeError: it is not called from this replica, or is called in a nested ``tf.function``, or a different
                replica called it fewer times.
        """
        self._require_place()
        return self._merged(merge_fn, tuple(args), dict(kwargs or {}))

    def _update(
        self, var: Any, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None, group: bool = True
    ) -> Any:
        """Call ``fn(copy, *args, **kwargs)`` for each replica's copy of a variable, once all have called this."""
        return self._extended._replica_ctx_update(var, fn, args, kwargs, group)

    @property
    def strategy(self) -> Strategy:
        """The strategy of this replica."""
        return self._strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas."""
        return self._strategy.num_replicas_in_sync

    @property
    def replica_id_in_sync_group(self) -> Any:
        """This replica's number, an int32 tensor of shape ``()``; in the default context outside ``run``, the int 0."""
        return adopt(torch.tensor(self._replica_id, dtype=torch.int32))

    @property
    def devices(self) -> tuple[str, ...]:
        """The name of this replica's device, in a tuple."""
        stack.require_replica(self)
        return (self._extended._device(self._replica_id),)

    def _require_place(self) -> None:
        """Refuse a caller outside of this replica, or, except in the default strategy, in a nested ``tf.function``."""
        stack.require_replica(self)
        if self._extended._makes_variables:
            stack.require_no_function(self)

    def _leaves(self, value: Any) -> list[Any]:
        return leaves_of(value, self._extended._local_index(self._replica_id))

    def _communicator(self) -> Communicator | None:
        """Return the communicator of the replicas; None if there is only this one."""
        communicator: Communicator | None = self._extended._communicator
        return communicator

    def _agree(self, collective: str, leaves: int, axis: int | None = None) -> None:
        """Require that the other replicas of this process, if any, are about to start the same exchange."""

    def _await(self, is_over: Callable[[], bool], seconds: float) -> None:
        """Return when ``is_over()``, or after some seconds; the other replicas of this process run meanwhile."""
        poll(is_over, seconds)

    def _made(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the variable that ``make`` makes for all replicas of this process."""
        return make()

    def _merged(self, merge_fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with stack.entered(self._strategy, None):
            return select(0, merge_fn(self._strategy, *args, **kwargs))

    def _reduced(self, op: ReduceOp, leaves: list[Any], timeout: float | None) -> list[Any]:
        communicator = self._communicator()
        if communicator is None:
            return sparse.copies(leaves)
        require = dtypes.require_reduced if self._extended._limits_dtypes else dtypes.require_added
        require("all_reduce", leaves, communicator.rank, communicator.size)
        self._agree("all_reduce", len(leaves))
        return sparse.all_reduce(communicator, op, leaves, timeout)


class DefaultReplicaContext(ReplicaContext):
    """The single replica of a caller outside of all strategies."""

    @property
    def replica_id_in_sync_group(self) -> Any:
        """The int 0."""
        return 0


def poll(is_over: Callable[[], bool], seconds: float) -> None:
    """Return when ``is_over()``, or after some seconds."""
    limit = monotonic() + seconds
    while not is_over() and monotonic() < limit:
        sleep(_PAUSE)
