"""The examples in the docstrings of the engine's public functions print what they say."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch

import collshim
import collshim.testing
from collshim import Communicator

pytestmark = pytest.mark.threads

MODULES = ("coalesced", "communicator", "lifetime", "messages", "objects", "launching.launch", "testing.assertions")
EXAMPLES = {
    f"{module}: {example.name}": example
    for module in MODULES
    for example in doctest.DocTestFinder().find(import_module(f"collshim.{module}"))
    if example.examples
}


def ranks(fn: Callable[[Communicator], Any]) -> list[Any]:
    """Call ``fn`` with the communicator of each of two ranks; return the results in rank order."""
    return collshim.launch(lambda: fn(collshim.current().communicator), 2)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_it_says(name: str) -> None:
    example = EXAMPLES[name]
    example.globs = {**vars(collshim.testing), "collshim": collshim, "np": np, "ranks": ranks, "torch": torch}
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=report.append)
    assert results.failed == 0, "".join(report)


@pytest.mark.parametrize(
    "name",
    [name for name in vars(Communicator) if name[0] != "_" and callable(getattr(Communicator, name))],
)
def test_each_collective_has_an_example(name: str) -> None:
    assert f"communicator: collshim.communicator.Communicator.{name}" in EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_site_shows_examples_as_code(name: str) -> None:
    lines = (EXAMPLES[name].docstring or "").splitlines()
    first = next(number for number, line in enumerate(lines) if line.lstrip().startswith(">>>"))
    assert lines[first - 1].strip() == "Examples:"
