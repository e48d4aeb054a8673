"""Gradients with respect to attached tensors (source: MegEngine 1.13.0, ``megengine.autodiff.grad_manager``)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from collshim.arrays import Array, as_torch
from collshim.calls.call import name_of
from collshim.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, also
from collshim.megengine.distributed.helper import TensorFuture

__all__ = ["GradManager"]

Callback: TypeAlias = Callable[[Tensor, Tensor], Any]


class _Recording(threading.local):
    """The managers that record on this thread, which is this rank's, oldest first."""

    def __init__(self) -> None:
        self.managers: list[GradManager] = []


_recording = _Recording()


def records() -> bool:
    """Whether any manager records on this rank."""
    return bool(_recording.managers)


def join_backward(output: Tensor) -> None:
    """Have every manager that records on this rank go through ``output`` in its backward, though no loss uses it."""
    for manager in _recording.managers:
        manager._joins.append(output)


def go_on_to(output: Tensor) -> None:
    """Have their backward go on through ``output``, though nothing that it was computed from is attached here."""
    if output.requires_grad and _recording.managers:
        leaves = _leaves(output)
        for manager in _recording.managers:
            manager._foreign.extend(leaves)


class GradManager:
    """Computes gradients with respect to the tensors attached to it, and adds them to their ``grad``.

    Attach torch tensors, which need not require gradients; while the manager records they do. What is computed from
    them with torch and with ``functional.distributed`` between ``record`` and ``backward`` is differentiated.

    >>> manager = GradManager().attach([weight])  # doctest: +SKIP
    >>> with manager:  # doctest: +SKIP
    ...     loss = (weight * inp).sum()
    ...     manager.backward(loss)
    >>> weight.grad  # doctest: +SKIP
    """

    def __init__(self) -> None:
        self._attached: Any = WeakTensorKeyDictionary()  # tensor -> its callbacks
        self._borrowed: list[Tensor] = []
        self._joins: list[Tensor] = []
        self._foreign: list[Tensor] = []
        self._records = False

    def attached_tensors(self) -> list[Tensor]:
        """The tensors attached, in the order in which they were; the manager does not keep them alive."""
        return list(self._attached.keys())

    def attach(
        self, tensors: Tensor | Iterable[Tensor], callbacks: Callback | Iterable[Callback] | None = None
    ) -> GradManager:
        """Attach tensors, and call each callback with ``(tensor, grad)`` in every backward.

        Args:
            tensors: one or many, of floating point or complex dtype.
            callbacks: one or many, called in their order; each returns what becomes the gradient, or a future of it
                (as ``make_allreduce_cb`` does). Attaching a tensor again adds callbacks to it.

        Raises:
            AssertionError: not a torch tensor, or one of integers or booleans.
        """
        new_callbacks = [callbacks] if callable(callbacks) else list(callbacks or [])
        for tensor in [tensors] if isinstance(tensors, Tensor) else list(tensors):
            _require_differentiable(tensor)
            self._attached.setdefault(tensor, []).extend(new_callbacks)
            if self._records:
                self._borrow(tensor)
        return self

    def record(self) -> None:
        """Start to record; RuntimeError where it does already."""
        if self._records:
            raise also(ArgumentError, RuntimeError)("already recording")
        self._records = True
        _recording.managers.append(self)
        for tensor in self.attached_tensors():
            self._borrow(tensor)

    def backward(self, y: Array | Sequence[Array] | None = None, dy: Array | Sequence[Array] | None = None) -> None:
        """Differentiate and add to ``grad`` of the attached tensors; ends the record.

        Every rank whose tensors went into a collective calls this: with what it made of the output, or without an
        argument where it has no output (``reduce_sum`` and ``gather`` off the root, ``remote_send``).

        Args:
            y: what is differentiated, one or many; one that does not depend on an attached tensor counts for nothing.
            dy: the gradient of each, of its shape; None for ones.

        Raises:
            RuntimeError: nothing is recorded.
            AssertionError: ``y`` and ``dy`` are not equally many.
        """
        if not self._records:
            raise also(ArgumentError, RuntimeError)(
                "no computation history: call record(), or enter the manager, first"
            )
        try:
            grads = self._gradients(*_paired(y, dy))
            updates = [(tensor, self._called_back(tensor, grad)) for tensor, grad in grads]
            for tensor, grad in updates:
                _accumulate(tensor, grad)
        finally:
            self.release()

    def release(self) -> None:
        """Stop to record and forget what was recorded."""
        if self._records:
            self._records = False
            _recording.managers.remove(self)
        for tensor in self._borrowed:
            _hand_over(tensor)
        self._borrowed, self._joins, self._foreign = [], [], []

    def __enter__(self) -> GradManager:
        self.record()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    def _borrow(self, tensor: Tensor) -> None:
        if not tensor.requires_grad:
            self._borrowed.append(tensor.requires_grad_(True))

    def _gradients(self, ys: list[Tensor], dys: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
        tensors = self.attached_tensors()
        pairs = [(y, dy) for y, dy in zip(ys, dys, strict=True) if y.requires_grad]
        pairs += [(join, torch.zeros_like(join)) for join in self._joins]
        inputs = [*tensors, *self._foreign]
        if not pairs or not inputs:
            return []
        grads = torch.autograd.grad(
            [y for y, _ in pairs],
            inputs,
            [dy for _, dy in pairs],
            retain_graph=len(_recording.managers) > 1,
            allow_unused=True,
        )
        pairs_of_attached = [(tensor, grad) for tensor, grad in zip(tensors, grads, strict=False) if grad is not None]
        return _of_their_own(pairs_of_attached, dys)

    def _called_back(self, tensor: Tensor, grad: Any) -> Any:
        for callback in self._attached[tensor]:
            grad = callback(tensor, grad)
        return grad


def _require_differentiable(tensor: Any) -> None:
    if not isinstance(tensor, Tensor):
        raise also(ArgumentTypeError, AssertionError)(
            f"Object to be attached should be Tensor: it is {type(tensor).__module__}.{type(tensor).__qualname__}"
        )
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise also(ArgumentTypeError, AssertionError)(
            "Only tensors of floating point dtype can be attached to get gradients, "
            f"get tensor dtype: {name_of(tensor.dtype)} and shape: {tuple(tensor.shape)}"
        )


def _paired(y: Any, dy: Any) -> tuple[list[Tensor], list[Tensor]]:
    ys = [as_torch(value, what="backward: y") for value in _listed(y)]
    dys = (
        [torch.ones_like(value) for value in ys]
        if dy is None
        else [as_torch(value, what="backward: dy") for value in _listed(dy)]
    )
    if len(ys) != len(dys):
        raise also(ArgumentValueError, AssertionError)(f"backward: {len(dys)} dy are given, should be {len(ys)} as y")
    return ys, dys


def _of_their_own(pairs: list[tuple[Tensor, Tensor]], dys: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Gradients that may be written in place: torch returns one tensor for several inputs, and expanded ones."""
    addresses = {dy.data_ptr() for dy in dys}
    own_pairs = []
    for tensor, grad in pairs:
        if grad.data_ptr() in addresses or not grad.is_contiguous():
            grad = grad.clone(memory_format=torch.contiguous_format)
        addresses.add(grad.data_ptr())
        own_pairs.append((tensor, grad))
    return own_pairs


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _accumulate(tensor: Tensor, grad: Any) -> None:
    """Add to ``tensor.grad``; a gradient of one element becomes 0-d where the tensor is."""
    gradient = grad.get() if isinstance(grad, TensorFuture) else grad
    if not isinstance(gradient, Tensor):
        raise ArgumentTypeError(f"backward: a callback returned {type(gradient).__qualname__}, should be a tensor")
    with torch.no_grad():
        gradient = gradient.detach().reshape(tensor.shape)
        if not tensor.is_leaf:
            tensor.retain_grad()  # else torch warns of the grad of a tensor that was computed
        tensor.grad = gradient if tensor.grad is None else tensor.grad + gradient


def _hand_over(tensor: Tensor) -> None:
    """Give back a borrowed tensor, unless another manager of this rank still records with it."""
    for manager in _recording.managers:
        if any(other is tensor for other in manager.attached_tensors()):
            manager._borrowed.append(tensor)
            return
    tensor.requires_grad_(False)


def _leaves(output: Tensor) -> list[Tensor]:
    """What ``output`` was computed from at last."""
    leaves: list[Tensor] = []
    nodes: list[Any] = [output.grad_fn]
    for node in nodes:
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        elif node is not None:
            nodes.extend(parent for parent, _ in node.next_functions)
    return leaves
