"""The programs of ``programs.toml``, the packages that they need, and the environment that has these."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests import environments

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = Path(__file__).with_name("programs.toml")
OWN = "tests.upstream.programs.scripts"
"""The package of the programs that take the backend as an argument."""


class Column(NamedTuple):
    """A column of the table: a way to run the programs over collshim, beside gloo on as many ranks.

    Attributes:
        title: its heading.
        ranks: the number of ranks.
        stands_in: whether `collshim run --as torch` starts the program, which names gloo; otherwise torch's launcher
            starts it, and it names the backend collshim.
    """

    title: str
    ranks: int
    stands_in: bool


COLUMNS = Column("2 ranks", 2, False), Column("4 ranks", 4, False), Column("2 ranks, as torch", 2, True)


@dataclass(frozen=True)
class Program:
    """A program that ranks run.

    Attributes:
        name: its name in the table.
        package: the package whose use it shows.
        run: the module that is run as a program, below ``OWN`` if it starts with a dot.
        arguments: its arguments, after the backend.
        environment: further variables, as in ``NAME=value``.
        launcher: further options of ``torch.distributed.run``, and of ``collshim run``.
        seconds: its deadline.
        ranks: the numbers of ranks that it runs on.
    """

    name: str
    package: str
    run: str
    arguments: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    launcher: tuple[str, ...] = ()
    seconds: float = 100
    ranks: tuple[int, ...] = (2, 4)

    def command(self, backend: str) -> list[str]:
        """Return the module and its arguments, as ``torch.distributed.run --module`` takes them."""
        if self.run.startswith("."):
            return [OWN + self.run, backend, *self.arguments]
        return ["tests.upstream.programs.started", backend, self.run, *self.arguments]

    @property
    def columns(self) -> list[Column]:
        """The columns in which it has outcomes."""
        return [column for column in COLUMNS if column.ranks in self.ranks]


def programs() -> list[Program]:
    """Return the programs in the order of the file."""
    return [Program(**{key: plain(value) for key, value in entry.items()}) for entry in _read()["program"]]


def requirements() -> dict[str, str]:
    """Return the pinned version of each package."""
    versions: dict[str, str] = _read()["packages"]
    return versions


def make_environment() -> Path:
    """Return the Python of the programs' environment; make it if missing."""
    packages = [f"{name}=={version}" for name, version in requirements().items()]
    return environments.make("upstream-programs", _read()["python"], packages)


def _read() -> dict[str, Any]:
    with FILE.open("rb") as file:
        return tomllib.load(file)


def plain(value: Any) -> Any:
    """Return a value of a TOML file, with a tuple for a list."""
    return tuple(value) if isinstance(value, list) else value
