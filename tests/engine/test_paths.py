"""Every path of every transport is taken by some case of the suite."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.engine.paths import FILES, FOLDER, NO_PATH, paths, taken

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("path", paths("threads"))
def test_thread_path_is_taken(path: str) -> None:
    assert paths("threads")[path] in taken("threads")


@pytest.mark.parametrize("path", paths("processes"))
def test_process_path_is_taken(path: str) -> None:
    assert paths("processes")[path] in taken("processes")


@pytest.mark.parametrize("transport", FILES)
def test_each_file_has_paths(transport: str) -> None:
    assert {file for file, _ in paths(transport).values()} == {*FILES[transport]}


def test_every_start_of_gloo_is_a_path() -> None:
    files = ("processes/gloo.py", "processes/reductions.py")
    starts = [path for path in paths("processes") if path.startswith(files) and "," not in path]
    trees = [ast.parse((Path(FOLDER) / file).read_text(encoding="utf-8")) for file in files]
    functions = [node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    inner = [
        part.name
        for node in functions
        if not NO_PATH.search(node.name)
        for part in ast.walk(node)
        if isinstance(part, ast.FunctionDef)
    ]
    assert len([path for path in starts if path.endswith(".start")]) == inner.count("start")
