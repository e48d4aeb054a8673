"""How a rank differentiates a loss through a collective, and the gradient that it should find.

Each rank's loss is the sum of its result times whole numbers (``values.weights``), so a gradient is exact, and shows
the origin of every element of every rank's result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from collshim.conformance import gradients, reference
from collshim.conformance.bindings.answers import Shaped, Tree, leaves
from collshim.conformance.bindings.kinds import KINDS, kind_of
from collshim.conformance.values import weights

Rule = Literal["sum", "own"]  # the derivative of the sum of all ranks' losses, or of this rank's loss by its own result
Weights = Sequence[NDArray[Any]]


class Weighing:
    """The reference, with each rank's results replaced by their factors in its loss."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(reference, name)
        if name in ("stacked", "concatenated", "split"):
            return function
        return lambda *arguments, **keywords: _weigh(function(*arguments, **keywords))


def by_backward(place: Any, inputs: Sequence[Any], forward: Callable[[], Tree], weigh: Callable[[], Weights]) -> Tree:
    """Return the result of ``forward`` after a backward from its loss, as torch and similar frameworks do it."""
    for array in inputs:
        array.requires_grad_(True)
    returned = forward()
    loss = loss_of(outputs(returned), weigh())
    if loss is not None:
        loss.backward()
    return returned


def outputs(returned: Tree) -> list[Any]:
    """Return the arrays in a call's result."""
    return [leaf for leaf in leaves(returned) if kind_of(leaf) is not None]


def loss_of(arrays: Sequence[Any], numbers: Weights) -> Any:
    """Return the loss of a rank with these results, or None if it has none."""
    terms = [(array * KINDS["torch"].make(number)).sum() for array, number in zip(arrays, numbers, strict=True)]
    return sum(terms[1:], terms[0]) if terms else None


def weights_of(expected: Tree) -> Weights:
    """Return the weights in an answer expected of ``Weighing``; they are 0 for arbitrary values."""
    found = [leaf for leaf in leaves(expected) if isinstance(leaf, np.ndarray | Shaped)]
    return [np.zeros(leaf.shape, leaf.dtype) if isinstance(leaf, Shaped) else leaf for leaf in found]


def expected_gradient(case: Any, rank: int, rule: Rule, elsewhere: Literal["none", "zeros"], form: Any) -> Tree:
    """Return the gradient that ``rank`` should find, in the form ``form(case, rank)`` of its input."""
    weighed = _weigh(reference.of(case))
    found = weighed if rule == "own" else gradients.of(case, weighed)
    if found[rank] is None and elsewhere == "none":
        return None
    blank = case.parts() if isinstance(next(one for one in found if one is not None), list) else case.arrays()
    filled = [_zeros(blank[sender]) if one is None else one for sender, one in enumerate(found)]
    return form(case.with_values([leaf for one in filled for leaf in leaves(one)]), rank)


def _zeros(tree: Tree) -> Tree:
    return [np.zeros_like(leaf) for leaf in tree] if isinstance(tree, list) else np.zeros_like(tree)


def _weigh(results: Sequence[Tree]) -> list[Tree]:
    return [_weigh_result(rank, held) for rank, held in enumerate(results)]


def _weigh_result(rank: int, held: Tree) -> Tree:
    if isinstance(held, list):
        return [weights(part.shape, rank + 3 * place, str(part.dtype)) for place, part in enumerate(held)]
    return None if held is None else weights(held.shape, rank, str(held.dtype))
