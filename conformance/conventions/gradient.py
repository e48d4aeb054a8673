"""The gradient of an input if every rank's loss is the sum of what that rank holds afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np

from collshim.conformance import gradients, reference
from collshim.conformance.bindings.answers import Tree, leaves
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import ROOTED, Case
from collshim.conformance.conventions.shapes import in_letters


def gradient(binding: Binding, case: Case) -> str:
    """Return the gradient of each element, on the root and on others if they differ; "no" if there is no backward."""
    if not binding.admits.gradient:
        return "not checked" if binding.result == "returned" else "no"
    if case.reduce_op not in ("sum", "avg"):
        return "see [gradients](../gradients.md)"
    found = [_number(one, binding) for one in _by_rank(binding, case)]
    alike = case.collective not in ROOTED or len(set(found)) == 1
    return found[0] if alike else f"root: {found[0]}; others: {found[1]}"


def _by_rank(binding: Binding, case: Case) -> list[Tree]:
    ones = [_ones(held) for held in reference.of(case)]
    return ones if getattr(binding, "rule", "sum") == "own" else gradients.of(case, ones)


def _ones(held: Any) -> Any:
    if isinstance(held, list):
        return [np.ones_like(part) for part in held]
    return None if held is None else np.ones_like(held)


def _number(found: Tree, binding: Binding) -> str:
    if found is None:
        return "0" if getattr(binding, "elsewhere", "none") == "zeros" else "None"
    (number,) = {float(value) for leaf in leaves(found) for value in np.unique(leaf)}
    return in_letters(int(number))
