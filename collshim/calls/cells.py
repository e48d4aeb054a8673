"""Identify the cells of a notebook or of IPython by their file names in tracebacks."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Mapping
from typing import Any

Cells = dict[str, tuple[str, list[str]]]
"""The number of each cell and its lines, by its file's name."""

MARK = "ipy"
"""A substring of the names of all these files, and of few others."""

_OF_KERNEL = "/ipykernel_"
_OF_SHELL = re.compile(r"<ipython-input-(\d+)-")
_sent: dict[str, str] = {}
"""The numbers of the cells of the notebook that started this process."""


def cell_of(path: str) -> str:
    """Return the name of a file's cell, such as ``cell 3``; "" if the file is not a cell's."""
    number = _number(path)
    return f"cell {number}" if number else ""


def _number(path: str) -> str:
    if named := _OF_SHELL.match(path):
        return named[1]
    return (_sent.get(path) or _number_in_kernel(path)) if _OF_KERNEL in path else ""


def _number_in_kernel(path: str) -> str:
    """Ask IPython, which runs in the kernel, for a cell's number: the file name contains only a hash of its text."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    compiler: Any = getattr(shell, "compile", None)
    if not hasattr(compiler, "format_code_name"):  # an older IPython has none
        return ""
    named = compiler.format_code_name(path)  # ("Cell", "In[3]")
    found = None if named is None else re.search(r"\d+", named[1])
    return "" if found is None else found[0]


def known() -> Cells:
    """Return the cells that were executed, for processes that run functions from these cells."""
    paths = [path for path in list(linecache.cache) if MARK in path]
    return {path: (number, linecache.getlines(path)) for path in paths if (number := _number(path))}


def learn(cells: Mapping[str, tuple[str, list[str]]]) -> None:
    """Use the names and lines of these cells in errors of this process, which did not execute the cells."""
    for path, (number, lines) in cells.items():
        _sent[path] = number
        linecache.cache[path] = (sum(map(len, lines)), None, lines, path)  # None: there is no file to check
