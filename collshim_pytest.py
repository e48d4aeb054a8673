"""The options of collshim's conformance suite, for pytest.

    pytest --pyargs collshim.conformance --adapter mypkg.dist --dialect torch

pytest imports this in every run where collshim is installed. So it lies outside of the package, which imports torch,
and imports nothing until an option is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

TRANSPORTS = ("threads", "processes")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Make the options known."""
    group = parser.getgroup("collshim", "conformance suite (pytest --pyargs collshim.conformance)")
    group.addoption(
        "--adapter",
        metavar="MODULE",
        help="the module to test, in the place of the dialect's own (torch.distributed, oneflow, mindspore, "
        "tensorflow, megengine), or of another: oneflow.comm=mypkg.comm; without it, collshim's adapter",
    )
    group.addoption("--dialect", metavar="NAME", help="whose functions the module has: torch, oneflow, ...")
    group.addoption(
        "--transport",
        action="append",
        choices=TRANSPORTS,
        help="what the ranks are; for a module processes, unless said: only collshim's worlds have ranks as threads",
    )
    group.addoption(
        "--collshim-backend", metavar="NAME", help="of torch.distributed, or of the module: gloo, collshim, ..."
    )
    group.addoption("--collshim-import", metavar="MODULE", help="what every rank imports first, to register a backend")
    group.addoption(
        "--collshim-xfails-file", metavar="FILE", help="functions, or cases, that are known to fail, a line each"
    )
    group.addoption("--collshim-skips-file", metavar="FILE", help="the same of what is not to be asked")
    group.addoption("--collshim-kinds", action="append", metavar="KIND", help="of arrays: torch, numpy")
    group.addoption("--collshim-timeout", type=float, metavar="SECONDS", help="for the ranks to answer a case")
    group.addoption("--collshim-allow-missing", action="store_true", help="ask a module that has none of the functions")


def pytest_configure(config: pytest.Config) -> None:
    """Hand the options to the suite, where one is used."""
    adapter, backend = config.getoption("adapter"), config.getoption("collshim_backend")
    registers = config.getoption("collshim_import")
    dialect = config.getoption("dialect") or ("torch" if backend else None)
    wrong = ""
    if adapter and not dialect:
        wrong = f"--adapter {adapter} needs --dialect, the framework whose functions it has"
    elif registers and not backend:
        wrong = f"--collshim-import {registers} needs --collshim-backend, the name of the backend that it registers"
    if wrong:
        import pytest

        raise pytest.UsageError(wrong)
    if dialect:
        from collshim.conformance.plugin import configure

        configure(config, dialect)
