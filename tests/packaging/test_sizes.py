"""A file has one subject, and a function is as long as its one thought."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

LINES_OF_A_FILE = 400
LINES_OF_A_FUNCTION = 30
FOLDERS = ("collshim", "adapters", "conformance", "demo", "tests", "docs")

LONG = "\n".join(("def fill():", "    while True:", *["        x = 1"] * LINES_OF_A_FUNCTION))
DOCUMENTED = "\n".join(
    ("def fill(", "    x,", "):", '    """Text.', *["    More."] * 40, '    """', *["    x = 1"] * 30)
)


@pytest.fixture(scope="module")
def files(root: Path) -> dict[str, str]:
    """Return the text of every Python file, by its path."""
    paths = [path for folder in FOLDERS for path in (root / folder).rglob("*.py")]
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def long_functions(text: str) -> Iterator[tuple[str, int]]:
    """Yield names and lengths of functions whose body, without the docstring, has too many lines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            length = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            if length > LINES_OF_A_FUNCTION:
                yield node.name, length


def test_no_file_exceeds_the_limit(files: dict[str, str]) -> None:
    lengths = {name: len(text.splitlines()) for name, text in files.items()}
    assert {name: length for name, length in lengths.items() if length > LINES_OF_A_FILE} == {}
    assert "tests/packaging/test_sizes.py" in lengths


def test_no_function_exceeds_the_limit(files: dict[str, str]) -> None:
    functions = {name: [*long_functions(text)] for name, text in files.items()}
    assert {name: lengths for name, lengths in functions.items() if lengths} == {}


def test_long_function_is_detected() -> None:
    assert [*long_functions(LONG)] == [("fill", LINES_OF_A_FUNCTION + 1)]


def test_signature_and_docstring_do_not_count() -> None:
    assert [*long_functions(DOCUMENTED)] == []
