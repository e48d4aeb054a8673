"""How a real framework computes gradients, if it differs from torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

from collshim.conformance.bindings import find
from collshim.conformance.bindings.answers import Tree
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.differentiation import Weights, outputs


def by_tape(place: Any, inputs: Sequence[Any], forward: Callable[[], Tree], weigh: Callable[[], Weights]) -> Tree:
    """Differentiate as TensorFlow does, with a tape in a replica; store the gradients where bindings expect them."""
    tf = import_module("tensorflow")

    def step() -> Any:
        with tf.GradientTape() as tape:
            for array in inputs:
                tape.watch(array)
            returned = forward()
            terms = [tf.reduce_sum(array * number) for array, number in zip(outputs(returned), weigh(), strict=True)]
            loss = tf.add_n(terms)
        return returned, tape.gradient(loss, list(inputs))

    returned, found = place.memory["tensorflow", "strategy"].run(step)
    for array, gradient in zip(inputs, found, strict=True):
        array.grad = gradient
    return returned


def by_transformation(
    place: Any, inputs: Sequence[Any], forward: Callable[[], Tree], weigh: Callable[[], Weights]
) -> Tree:
    """Differentiate as MindSpore does: a function of the inputs, the same tensor objects that ``forward`` uses."""
    ms = import_module("mindspore")
    held: list[Tree] = []

    def loss(*_: Any) -> Any:
        held.append(forward())
        arrays = outputs(held[-1])
        return sum((array * ms.Tensor(number)).sum() for array, number in zip(arrays, weigh(), strict=True))

    found = ms.grad(loss, grad_position=tuple(range(len(inputs))))(*inputs)
    for array, gradient in zip(inputs, found if isinstance(found, tuple) else (found,), strict=True):
        array.grad = gradient
    return held[-1]


_WAYS = {"tensorflow": by_tape, "mindspore": by_transformation}


@cache
def spoken(name: str, prefix: str) -> Binding:
    """Return the binding of this name, which differentiates as its framework does."""
    binding = find(name)
    way = None if prefix else _WAYS.get(binding.framework.name)
    return replace(binding, framework=replace(binding.framework, differentiate=way)) if way else binding
