"""Calls use only the port's methods of their group."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from torch.distributed import ProcessGroup

import collshim
from collshim.transports.processes.backend import Singles
from collshim.transports.processes.port import Port

FOLDER = Path(collshim.__file__).parent / "transports" / "processes"
METHODS = {name for name in vars(Port) if callable(getattr(Port, name)) and not name.startswith("__")} - {"_proto_hook"}
LOOKED_UP = {f"{name}_single" for name in Singles._fields}
"""Methods with one of two names, depending on the release of torch."""


def asked(module: str) -> Iterator[str]:
    """Yield attributes of what is called ``group`` there, or made by ``_port``."""
    for node in ast.walk(ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute):
            owner = node.value
            called = isinstance(owner, ast.Call) and getattr(owner.func, "attr", "") == "_port"
            if called or (isinstance(owner, ast.Name) and owner.id == "group"):
                yield node.attr


@pytest.mark.parametrize("module", ["gloo", "reductions", "backend"])
def test_data_is_moved_by_port_methods(module: str) -> None:
    assert set(asked(module)) <= METHODS


def test_port_methods_are_used_and_exist_in_torch() -> None:
    found = {name for module in ("gloo", "reductions", "backend") for name in asked(module)}
    messages = {name for name in asked("nccl/messages") if name in ("send", "recv")}
    assert found | messages | LOOKED_UP == METHODS
    assert {name for name in METHODS - LOOKED_UP if not hasattr(ProcessGroup, name)} == set()
