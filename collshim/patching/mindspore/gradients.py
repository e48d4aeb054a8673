"""Collectives in MindSpore's autograd graph: one ``_Function``, with each collective's own rule."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from collshim.patching.mindspore.tensors import Tensors
from collshim.patching.replacing import Foreign
from collshim.work import Work

Started = tuple[list[Tensor], Work[Any]]


class Operation:
    """One call: how it starts, and the rule that computes its inputs' gradients from its outputs' gradients.

    Attributes:
        inputs, outputs: MindSpore's tensors, for the rule.
        work: the work whose wait completes the outputs.
    """

    def __init__(
        self,
        start: Callable[[list[Tensor]], Started],
        rule: Callable[[Operation, Sequence[Foreign]], Sequence[Foreign]] | None = None,
    ) -> None:
        self.start, self.rule = start, rule
        self.inputs: Sequence[Any] = ()
        self.outputs: Sequence[Any] = ()
        self.work: Work[Any] | None = None


class Posted(NamedTuple):
    """The outputs of a call; they are complete after the wait of ``work``."""

    outputs: Sequence[Any]
    work: Work[Any]

    def wait(self) -> Foreign:
        """Wait, and return the single output."""
        self.work.wait()
        return self.outputs[0]


class Differentiation:
    """Posts operations; if MindSpore differentiates the calling function, their rules are recorded."""

    def __init__(self, tensors: Tensors) -> None:
        self._tensors = tensors
        self._executor: Any = importlib.import_module("mindspore.graph.api")._pynative_executor
        self._function = _function(self)

    def post(self, operation: Operation, *inputs: Foreign) -> Posted:
        """Post an operation; every rank of the group must do so."""
        if operation.rule is None or not inputs or not self._executor.requires_grad():
            outputs = self.forward(operation, inputs)
        else:
            result = self._function.apply(operation, *inputs)
            outputs = result if isinstance(result, tuple) else (result,)
        if operation.work is None:
            raise AssertionError("an operation was applied without being started")
        return Posted(outputs, operation.work)

    def forward(self, operation: Operation, inputs: Sequence[Foreign]) -> Sequence[Foreign]:
        """Start an operation and return its outputs; they must be complete before the rule reads them."""
        tensors, operation.work = operation.start([self._tensors.read(value) for value in inputs])
        operation.inputs, operation.outputs = inputs, tuple(map(self._tensors.make, tensors))
        return operation.outputs


def _function(owner: Differentiation) -> Foreign:
    base: Any = importlib.import_module("mindspore.common._grad_function")._Function

    def forward(ctx: Foreign, operation: Operation, *inputs: Foreign) -> Foreign:
        ctx.operation = operation
        outputs = tuple(owner.forward(operation, inputs))
        return outputs[0] if len(outputs) == 1 else outputs

    def backward(ctx: Foreign, *gradients: Foreign) -> Foreign:
        operation: Operation = ctx.operation
        found = () if operation.rule is None else operation.rule(operation, gradients)
        return (None, *found)

    return type("Carried", (base,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
