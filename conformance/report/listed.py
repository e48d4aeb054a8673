"""The functions and cases that a file names, because they are known to fail or must not be run.

# one function, or one of its cases, on each line, as a run prints them
torch.distributed.reduce_scatter
torch.distributed.all_reduce: Case('all_reduce', reduce_op='band', dtype='bool')
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from collshim import ArgumentValueError
from collshim.conformance.bindings import bindings
from collshim.conformance.cases import Case


@dataclass(frozen=True)
class Listed:
    """The entries of a file.

    Attributes:
        file: the name of the file, for messages.
        entries: a function, by its binding's name, and a case; None for all of its cases.
    """

    file: str = ""
    entries: frozenset[tuple[str, Case | None]] = frozenset()

    def entry(self, function: str, case: Case) -> tuple[str, Case | None] | None:
        """Return the entry that names this case of this function, or None."""
        return next((entry for entry in ((function, case), (function, None)) if entry in self.entries), None)


NOTHING = Listed()


def read(path: Path | None) -> Listed:
    """Read the entries of the file.

    Raises:
        ArgumentValueError: the file cannot be read, or a line does not name a function of the suite or a case.
    """
    if path is None:
        return NOTHING
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ArgumentValueError(f"{path}: {error.strerror or error}") from error
    found = set()
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if text:
            found.add(asked(text, f"{path}, line {number}"))
    return Listed(str(path), frozenset(found))


def asked(text: str, where: str) -> tuple[str, Case | None]:
    """Return the function, and the case after its colon, as a run prints them.

    Raises:
        ArgumentValueError: the function does not exist, or the case is not valid.
    """
    function, _, line = text.partition(": ")
    if function not in {binding.name for binding in bindings()}:
        raise ArgumentValueError(f"{where}: {function!r} is not a function of the suite, should be as a run prints it")
    return function, case_of(line, where) if line else None


def one_case(text: str, where: str) -> tuple[str, Case]:
    """Return the case, and the function before it; "" for all functions of its collective.

    Raises:
        ArgumentValueError: the function does not exist, or the case is not valid.
    """
    line = text.strip()
    function, case = ("", case_of(line, where)) if line.startswith("Case(") else asked(line, where)
    if case is None:
        raise ArgumentValueError(f"{where} is {line!r}, should be a case, as a run prints it: FUNCTION: Case(...)")
    return function, case


def case_of(line: str, where: str) -> Case:
    """Return the case that prints as this line.

    Raises:
        ArgumentValueError: the line is not a case.
    """
    try:
        return Case.parse(line)
    except (SyntaxError, TypeError, ValueError) as error:
        raise ArgumentValueError(
            f"{where}: {line!r} is not a case, should be one as a run prints it: {error}"
        ) from error
