"""Shapes in letters: each of n ranks gives ``(a, b)``. They are read from a case whose lengths are primes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from collshim.conformance.bindings.answers import Handle, Shaped, Tree, leaves
from collshim.conformance.cases import Case

LETTERS = {"n": 3, "a": 5, "b": 7}


def case(collective: str, reduce_op: str = "sum", **more: Any) -> Case:
    """Return the case that facts are read from: n ranks, parts of ``(a, b)``."""
    shape = (LETTERS["a"], LETTERS["b"])
    return Case(collective, size=LETTERS["n"], shape=shape, reduce_op=reduce_op, seed=1, **more)


def shape_of(tree: Tree) -> str:
    """Return the shape of an array, or of the equal arrays of a list: ``(n*a, b)``, n × ``(a, b)``."""
    found = [symbolic(leaf.shape) for leaf in leaves(tree) if is_array(leaf)]
    if not found:
        return "None" if tree is None else ""
    if is_array(tree) or isinstance(tree, dict) or len(found) == 1:
        return f"`{found[0]}`"
    if isinstance(tree, list) and isinstance(tree[0], list):
        return f"{in_letters(len(tree))} lists of {shape_of(tree[0])}"
    return f"{in_letters(len(found))} × `{found[0]}`"


def symbolic(shape: Sequence[int]) -> str:
    """Return ``(n*a, b)`` for ``(15, 7)``."""
    lengths = [in_letters(length) for length in shape]
    return f"({lengths[0]},)" if len(lengths) == 1 else f"({', '.join(lengths)})"


def in_letters(number: int) -> str:
    """Return ``n*a`` for 15."""
    factors, rest = [], number
    for letter, prime in LETTERS.items():
        while rest and rest % prime == 0:
            factors.append(letter)
            rest //= prime
    return "*".join(factors) if rest == 1 and factors else str(number)


def kind_of_tree(tree: Tree) -> str:
    """Describe a result in a word or two: a tensor, ``(tensor, None)``, a list of n tensors."""
    if tree is None:
        return "None"
    if isinstance(tree, Handle):
        return "a handle"
    if is_array(tree):
        return "a tensor"
    if isinstance(tree, tuple) and len(tree) == 2 and not is_array(tree[1]):
        return f"`({_inside(tree[0])}, {_inside(tree[1])})`"
    if isinstance(tree, tuple) and len(tree) == 1:
        return "`(tensor,)`"
    if isinstance(tree, dict):
        return "the same nest"
    return _row(tree) if isinstance(tree, list | tuple) else repr(tree)


def is_array(tree: Tree) -> bool:
    """Return whether an expected tree is an array."""
    return isinstance(tree, np.ndarray | Shaped)


def _row(tree: Sequence[Tree]) -> str:
    handles = isinstance(tree[0], Handle)
    many = f"{len(tree)} handle" if handles else f"{in_letters(len(tree))} tensor"
    return f"a {type(tree).__name__} of {many}{'s' * (len(tree) > 1)}"


def _inside(tree: Tree) -> str:
    if is_array(tree):
        return "tensor"
    if isinstance(tree, list | tuple):
        return f"{type(tree).__name__} of {in_letters(len(tree))}"
    return "handle" if isinstance(tree, Handle) else repr(tree)
