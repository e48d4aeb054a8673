"""``tf.GradientTape``: gradients of computations inside a block, over torch's graph.

A variable is part of the graph while a tape is open; a tensor is from the call of ``watch`` on. A replica inherits the
tapes of the thread that called ``run``. Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from types import TracebackType
from typing import Any

import numpy as np
import torch

from collshim.arrays import as_torch, is_array
from collshim.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, also
from collshim.tensorflow import structures
from collshim.tensorflow.composites import RaggedTensor
from collshim.tensorflow.distribute import context, stack
from collshim.tensorflow.distribute.values import DistributedValues
from collshim.tensorflow.tensor import Tensor, adopt, plain

_TAPES: ContextVar[tuple[GradientTape, ...]] = ContextVar("tapes", default=())
_USED = "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)"


class UnconnectedGradients(Enum):
    """The gradient of a source that the target does not depend on: None, or zeros."""

    NONE = "none"
    ZERO = "zero"


class GradientTape:
    """Records the computations inside a ``with`` block, so that they can be differentiated afterwards.

    Args:
        persistent: whether ``gradient`` may be called more than once.
        watch_accessed_variables: whether trainable variables that are read inside the block have gradients.
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._watches_variables = watch_accessed_variables
        self._variables: dict[int, Any] = {}
        self._reads: dict[int, list[torch.Tensor]] = {}
        self._used, self._opened = False, False
        self._token: Any = None

    def __enter__(self) -> GradientTape:
        self._token, self._opened = _TAPES.set((*_TAPES.get(), self)), True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _TAPES.set(tuple(tape for tape in _TAPES.get() if tape is not self))

    def watch(self, tensor: Any) -> None:
        """Record a tensor, a variable or a nest of these from now on; integers have no gradients."""
        for leaf in structures.flatten(tensor):
            found = component_here(leaf)
            if hasattr(found, "_as_tensor"):
                self._variables[id(found)] = found
                continue
            if isinstance(found, RaggedTensor):
                raise ArgumentTypeError("watch: there are no gradients of ragged tensors: watch the tensor `values`")
            if not is_array(found):
                raise ArgumentValueError(
                    f"Passed in object {found!r} of type {type(found).__name__!r}, not tf.Tensor or tf.Variable."
                )
            value = found if isinstance(found, torch.Tensor) else as_torch(found)
            if value.is_floating_point() or value.is_complex():
                value.requires_grad_()

    def watched_variables(self) -> tuple[Any, ...]:
        """Return the variables that were read or watched, in that order; for a copy, the distributed variable."""
        found = [getattr(variable, "_container", variable) for variable in self._variables.values()]
        return tuple({id(variable): variable for variable in found}.values())

    def first_reads(self) -> list[tuple[Any, torch.Tensor]]:
        """Return each variable that was read, as ``watched_variables`` does, and the value that was read first."""
        found = {id(self._variables[key]): (self._variables[key], reads[0]) for key, reads in self._reads.items()}
        return [(getattr(variable, "_container", variable), value) for variable, value in found.values()]

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Stop gradients from passing through the block."""
        with torch.no_grad():
            yield

    def reset(self) -> None:
        """Clear the list of variables that were read."""
        self._variables, self._reads, self._used = {}, {}, False

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:
        """Return the gradient of the sum of ``target`` for each leaf of ``sources``, in their structure.

        None for a source that ``target`` does not depend on; zeros with ``unconnected_gradients="zero"``. Outside the
        replicas, a strategy's variable has the sum of its copies' gradients. Collectives in the graph communicate, so
        every replica must ask for gradients too.

        Raises:
            RuntimeError: it is a second call, and the tape is not ``persistent``.
        """
        return self._gradient(target, sources, output_gradients, unconnected_gradients, True)

    def _gradient(
        self, target: Any, sources: Any, output_gradients: Any, unconnected_gradients: Any, counts: bool
    ) -> Any:
        """Do the work of ``gradient``; ``counts`` is True for the first of the calls that make up one."""
        if not self._opened or (counts and self._used and not self._persistent):
            raise also(ArgumentError, RuntimeError)(_USED)
        self._used = True
        leaves = structures.flatten(sources)
        inputs = [[one for part in _parts_here(leaf) for one in self._inputs_of(part)] for leaf in leaves]
        found = iter(_gradients(target, [one for several in inputs for one in several], output_gradients))
        results = [_add([next(found) for _ in several]) for several in inputs]
        if str(getattr(unconnected_gradients, "value", unconnected_gradients)).lower() == "zero":
            results = [_zeros(leaf) if one is None else one for leaf, one in zip(leaves, results, strict=True)]
        return structures.pack_sequence_as(sources, results)

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Return the gradient of each element of ``target``: shape ``(*target.shape, *source.shape)`` for each source.

        None for a source that ``target`` does not depend on; zeros with ``unconnected_gradients="zero"``.

        Raises:
            RuntimeError: it is a second call, and the tape is not ``persistent``.
        """
        whole = component_here(target)
        places = plain(whole).detach().new_zeros(whole.numel(), whole.numel()).fill_diagonal_(1)
        rows = [
            self._gradient(whole, sources, place.reshape(tuple(whole.shape)), unconnected_gradients, row == 0)
            for row, place in enumerate(places)
        ]
        columns = zip(*map(structures.flatten, rows), strict=True)
        found = [_stack(column, tuple(whole.shape)) for column in columns]
        return structures.pack_sequence_as(sources, found)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Return the Jacobian of each row of ``target`` for ``source``'s same row: ``(b, *target.shape[1:], *...)``.

        Rows must not depend on other rows.

        Raises:
            ValueError: one has fewer than two axes, or their numbers of rows differ.
            RuntimeError: it is a second call, and the tape is not ``persistent``.
        """
        shapes = [tuple(one.shape) for one in (component_here(target), component_here(source))]
        for shape in shapes:
            if len(shape) < 2:
                raise ArgumentValueError(f"Shape {shape} must have rank at least 2")
        if shapes[0][0] != shapes[1][0]:
            raise ArgumentValueError(
                f"Need first dimension of target shape {shapes[0]} and source shape {shapes[1]} to match."
            )
        whole = self.jacobian(target, source, unconnected_gradients)
        if whole is None:
            return None
        rows = torch.arange(shapes[0][0])
        return adopt(plain(whole).movedim(len(shapes[0]), 1)[rows, rows])

    def _inputs_of(self, source: Any) -> list[torch.Tensor]:
        """Return the tensors in the graph for a source: for a variable, the values read from it."""
        if hasattr(source, "_as_tensor"):
            return self._reads.get(id(source), [])
        return [source]

    def _read(self, variable: Any, value: torch.Tensor) -> None:
        reads = self._reads.setdefault(id(variable), [])
        if not any(value is one for one in reads):
            reads.append(value)
        self._variables[id(variable)] = variable

    def _wants(self, variable: Any) -> bool:
        return id(variable) in self._variables or (self._watches_variables and bool(variable.trainable))


def read(variable: Any, value: torch.Tensor) -> torch.Tensor:
    """Return a variable's value as a part of the graph, if an open tape watches the variable."""
    wanting = [tape for tape in _TAPES.get() if tape._wants(variable)]
    if not wanting or not (value.is_floating_point() or value.is_complex()):
        return value.detach()
    for tape in wanting:
        tape._read(variable, value)
    return value


def is_open() -> bool:
    """Return whether the caller is inside a tape's block."""
    return bool(_TAPES.get())


def component_here(value: Any) -> Any:
    """Return the component of a distributed value of the calling replica, or of the copy that is being updated.

    In any other context, return the first component.
    """
    if not isinstance(value, DistributedValues):
        return value
    replica, place = context.get_replica_context(), stack.updated()
    if place is not None and place < len(value.values):
        return value.values[place]
    if replica is None or len(value.values) == 1:
        return value.values[0]
    return value.values[replica.strategy.extended._local_index(int(replica.replica_id_in_sync_group))]


def _parts_here(source: Any) -> tuple[Any, ...]:
    """Return the copies of a variable that the caller stands for: across replicas all of them, otherwise its own."""
    if getattr(type(source), "_is_distributed_variable", False) and not source._is_used_alone():
        copies: tuple[Any, ...] = source.values
        return copies
    return (component_here(source),)


def _gradients(target: Any, inputs: list[torch.Tensor], output_gradients: Any) -> list[Any]:
    if target is None:
        raise ArgumentTypeError("Argument `target` should be a list or nested structure of Tensors, is None.")
    targets = [component_here(leaf) for leaf in structures.flatten(target)]
    given = [None] * len(targets) if output_gradients is None else structures.flatten(output_gradients)
    outputs, seeds = [], []
    for one, seed in zip(targets, given, strict=False):
        if isinstance(one, torch.Tensor) and one.requires_grad:
            outputs.append(plain(one))
            seeds.append(
                torch.ones_like(plain(one)) if seed is None else _seed(seed).to(one.dtype).expand(tuple(one.shape))
            )
    places = [place for place, one in enumerate(inputs) if isinstance(one, torch.Tensor) and one.requires_grad]
    results: list[Any] = [None] * len(inputs)
    if outputs and places:
        wanted = [inputs[place] for place in places]
        # The graph stays: another tape, or another call, may differentiate a part of it.
        found = torch.autograd.grad(
            outputs, wanted, seeds, retain_graph=True, create_graph=bool(_TAPES.get()), allow_unused=True
        )
        for place, one in zip(places, found, strict=True):
            results[place] = None if one is None else adopt(one)
    return results


def _seed(value: Any) -> torch.Tensor:
    return as_torch(value if is_array(value) else np.asarray(value))


def _stack(rows: tuple[Any, ...], shape: tuple[int, ...]) -> Tensor | None:
    if rows[0] is None:
        return None
    return adopt(torch.stack([plain(row) for row in rows]).reshape(shape + tuple(rows[0].shape)))


def _add(parts: list[Any]) -> Tensor | None:
    there = [part for part in parts if part is not None]
    return adopt(torch.stack(there).sum(0)) if len(there) > 1 else there[0] if there else None


def _zeros(source: Any) -> Tensor:
    found = component_here(source)
    return adopt(torch.zeros_like(plain(found._as_tensor() if hasattr(found, "_as_tensor") else found)))
