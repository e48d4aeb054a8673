"""The kind and the number of a test's ranks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.settings import get

DEADLINE = 60.0
"""Seconds that a test on ranks may take by default."""

FOREVER = 1e6
"""Seconds that mean no deadline: the operating system limits waits to a few weeks."""

OPTIONS = ("processes", "timeout", "default_group", "clock")


@dataclass(frozen=True, repr=False)
class Ranks:
    """The ranks that run a test.

    Args:
        size: the number of ranks.
        processes: whether they are processes instead of threads.
        timeout: seconds after which a test that has not ended fails.
        default_group: whether the default group of ``torch.distributed`` exists in the test; pass False if the code
            under test calls ``init_process_group`` itself.
        clock: "jumping" lets deadlines pass as soon as all ranks are blocked; only between threads.

    Raises:
        ArgumentError: an argument has the wrong type or is out of range.
    """

    size: int = 2
    processes: bool = False
    timeout: float = DEADLINE
    default_group: bool = True
    clock: str = "system"

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int):
            raise ArgumentTypeError(f"ranks: size is {self.size!r}, should be an int of at least 1")
        if self.size < 1:
            raise ArgumentValueError(f"ranks: size is {self.size}, should be at least 1")
        if isinstance(self.timeout, bool) or not isinstance(self.timeout, int | float):
            raise ArgumentTypeError(f"ranks: timeout is {self.timeout!r}, should be a number of seconds")
        if not self.timeout > 0:
            raise ArgumentValueError(f"ranks: timeout is {self.timeout!r}, should be more than 0 seconds")
        if self.clock not in ("system", "jumping"):
            raise ArgumentValueError(f"ranks: clock is {self.clock!r}, should be 'system' or 'jumping'")
        if self.processes and self.clock == "jumping":
            raise ArgumentValueError("ranks: clock is 'jumping' for processes, should be 'system': each has its own")

    def timeout_of_calls(self) -> float:
        """Return the seconds that a call may wait: the timeout of the options, unless the test's own is shorter.

        In that case it may wait forever: the test's deadline, which a debugger on another rank pauses, ends it.
        """
        chosen = get().timeout
        return chosen if self.clock == "jumping" or self.timeout > chosen else FOREVER

    def __repr__(self) -> str:
        """Show only values that differ from the defaults, to be short enough for ``--setup-show``."""
        values = [(field.name, getattr(self, field.name), field.default) for field in fields(self)[1:]]
        given = [f"{name}={value!r}" for name, value, default in values if value != default]
        return f"Ranks({', '.join([str(self.size), *given])})"

    def __str__(self) -> str:
        """Describe the ranks, as in the ids of tests."""
        return f"{self.size}-{'processes' if self.processes else 'ranks'}"


def from_marker(sizes: tuple[Any, ...], options: dict[str, Any]) -> list[Ranks]:
    """Return the ``Ranks`` that a marker asks for, one for each size; empty if it names no size.

    Raises:
        ArgumentError: an argument is unknown, or out of range.
    """
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        raise ArgumentTypeError(f"ranks: there is no argument {unknown[0]!r}, should be one of {', '.join(OPTIONS)}")
    if options and not sizes:
        raise ArgumentTypeError(f"ranks: {next(iter(options))} needs the number of ranks before it: ranks(4, ...)")
    return [Ranks(size, **options) for size in sizes]
