"""Names, kinds and defaults of parameters match the frameworks': ``signatures/<framework>.txt``.

They were read by ``inspect.signature`` in MegEngine 1.13.0, MindSpore 2.10.0, OneFlow 0.9.0 (``send`` and ``recv`` from
its manual), TensorFlow 2.21.0 and torch 2.13.0 (the functions in ``NEWER``: 2.15.0).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache, reduce
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.nn.functional

from collshim.conformance.bindings import bindings_of
from collshim.conformance.bindings.messages import Messages
from collshim.frameworks import FRAMEWORKS

pytestmark = pytest.mark.unranked

FOLDER = Path(__file__).parent / "signatures"
MODULES = (
    ("mindspore", "communication.comm_func"),
    ("oneflow", "comm"),
    ("torch", "distributed"),
    ("torch", "distributed.nn.functional"),
)
NEWER = ("gather_into_tensor", "gather_single", "get_backend_impl", "set_timeout")


@cache
def table(framework: str) -> dict[str, str]:
    """Return the signatures by path."""
    lines = (FOLDER / f"{framework}.txt").read_text().splitlines()
    signatures = {line.partition("(")[0]: line[line.index("(") :] for line in lines}
    if framework == "torch" and hasattr(torch.distributed, "gather_single"):  # torch 2.14 added a parameter
        of_objects = [path for path in signatures if "object" in path]
        signatures |= {path: signatures[path].removesuffix(")") + ", weights_only=False)" for path in of_objects}
    return signatures


def bare(function: Callable[..., Any]) -> str:
    """Return a signature without annotations, with only the class of objects among its defaults."""
    signature = inspect.signature(function)
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return re.sub(r"<[\w.]+\.(\w+) object at \w+>", r"<\1>", str(inspect.Signature(plain)))


def found(framework: str, path: str) -> Any:
    return below(import_module(f"collshim.{framework}"), path)


def below(module: Any, path: str) -> Any:
    return reduce(getattr, path.split("."), module)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_signatures_match_the_frameworks(framework: str) -> None:
    ours = {path: bare(found(framework, path)) for path in table(framework)}
    assert ours == table(framework)


@pytest.mark.parametrize(("framework", "module"), MODULES)
def test_every_offered_function_is_in_the_table(framework: str, module: str) -> None:
    offered = found(framework, module)
    functions = {f"{module}.{name}" for name in offered.__all__ if inspect.isfunction(getattr(offered, name))}
    told = {path for path in table(framework) if path.rpartition(".")[0] == module}
    assert functions == {path for path in told if inspect.isfunction(found(framework, path))}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_spelled_function_is_in_the_table(framework: str) -> None:
    spellings = bindings_of(framework)
    halves = {half for one in spellings if isinstance(one, Messages) for half in one.halves}
    spelled = {*halves, *(one.path for one in spellings)}
    assert spelled - {f"{framework}.{path}" for path in table(framework)} == set()


@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the table is torch 2.13's")
def test_table_matches_torch() -> None:
    private = ("_all_gather_base", "_reduce_scatter_base", "_coalescing_manager", "P2POp")
    paths = {*table("torch"), *(f"distributed.{name}" for name in private)} - {f"distributed.{name}" for name in NEWER}
    ours = {path: bare(found("torch", path)) for path in paths}
    assert ours == {path: bare(below(torch, path)) for path in paths}


@pytest.mark.skipif(not hasattr(torch.distributed, "gather_single"), reason="torch before 2.14")
@pytest.mark.parametrize("name", NEWER)
def test_newer_functions_match_torch(name: str) -> None:
    assert bare(getattr(torch.distributed, name)) == table("torch")[f"distributed.{name}"]
