"""The options of collshim's conformance suite, for pytest.

    pytest --pyargs collshim.conformance --collshim-adapter mypkg.dist --collshim-framework torch

pytest imports this in every run where collshim is installed. So it lies outside of the package, which imports torch,
and imports nothing until an option is used.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

TRANSPORTS = ("threads", "processes")  # not imported: the package would be

SUITE = "collshim.conformance"

SHORT = ("adapter", "dialect", "framework", "transport", "backend", "kinds", "collective", "size", "case")
"""Options that a run of the suite takes as the command spells them, too."""

NARROWING = ("transport", "collective", "size", "case", "xfails_file", "skips_file", "kinds", "timeout")
"""Options that say what is asked of the one framework's functions, or how."""


def _size(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a size of a world, should be 1 or more")
    return int(text)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a time to wait, should be a number of seconds, more than 0")
    return seconds


def pytest_addoption(parser: pytest.Parser) -> None:
    """Make the options known."""
    group = parser.getgroup("collshim", f"conformance suite (pytest --pyargs {SUITE})")

    def add(name: str, text: str, **more: Any) -> None:
        group.addoption(f"--collshim-{name}", help=text, **more)

    add(
        "adapter",
        "the module to test, in the place of the framework's own (torch.distributed, oneflow, mindspore, tensorflow, "
        "megengine), or of another: oneflow.comm=mypkg.comm; without it, collshim's adapter",
        metavar="MODULE",
    )
    add("framework", "whose functions the module has: torch, oneflow, ...", metavar="NAME")
    text = "what the ranks are; for a module processes, unless said: only collshim's worlds have ranks as threads"
    add("transport", text, action="append", choices=TRANSPORTS)
    add("backend", "of torch.distributed, or of the module: gloo, collshim, ...", metavar="NAME")
    add("import", "what every rank imports first, to register a backend", metavar="MODULE")
    add("collective", "this row alone; may be given again", action="append", metavar="ROW")
    add("size", "of worlds, this alone; may be given again", action="append", type=_size, metavar="N")
    add("case", "one case alone, as a run prints it: [FUNCTION: ]Case(...)", metavar="CASE")
    add("xfails-file", "functions, or cases, that are known to fail, a line each", metavar="FILE")
    add("skips-file", "the same of what is not to be asked", metavar="FILE")
    add("kinds", "of arrays: torch, numpy; may be given again", action="append", metavar="KIND")
    add("timeout", "for the ranks to answer a case", type=_seconds, metavar="SECONDS")
    add("allow-missing", "ask a module that has none of the functions", action="store_true")


def pytest_load_initial_conftests(args: list[str]) -> None:
    """In a run of the suite, and in no other, the short names are these options'."""
    if not any(argument.startswith(SUITE) for argument in args):
        return
    for place, argument in enumerate(args):
        name, equals, value = argument.removeprefix("--").partition("=")
        if argument.startswith("--") and name in SHORT:
            args[place] = f"--collshim-{'framework' if name == 'dialect' else name}{equals}{value}"


def pytest_configure(config: pytest.Config) -> None:
    """Hand the options to the suite, where one is used."""
    adapter, backend = config.getoption("collshim_adapter"), config.getoption("collshim_backend")
    registers = config.getoption("collshim_import")
    framework = config.getoption("collshim_framework") or ("torch" if backend else None)
    wrong, given = "", [name for name in NARROWING if config.getoption(f"collshim_{name}") is not None]
    if adapter and not framework:
        wrong = f"--collshim-adapter {adapter} needs --collshim-framework, the framework whose functions it has"
    elif given and not framework:
        wrong = f"--collshim-{given[0].replace('_', '-')} needs --collshim-framework, the one that is asked"
    elif registers and not backend:
        wrong = f"--collshim-import {registers} needs --collshim-backend, the name of the backend that it registers"
    if wrong:
        import pytest

        raise pytest.UsageError(wrong)
    if framework:
        from collshim.conformance.plugin import configure

        configure(config, framework)
