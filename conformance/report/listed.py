"""Functions and cases that a file names: those that are known to fail, or are not to be asked.

# one function, or one of its cases, on a line, as a run prints them
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
    """What a file names.

    Attributes:
        file: its name, for texts.
        entries: a function, by its binding's name, and a case; None for all of its cases.
    """

    file: str = ""
    entries: frozenset[tuple[str, Case | None]] = frozenset()

    def entry(self, function: str, case: Case) -> tuple[str, Case | None] | None:
        """The entry that names this case of this function; None where there is none."""
        return next((entry for entry in ((function, case), (function, None)) if entry in self.entries), None)


NOTHING = Listed()


def read(path: Path | None) -> Listed:
    """What the file names.

    Raises:
        ArgumentValueError: it is not there, or a line names no function of the suite, or no case.
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
    """A function, and the case behind its colon, as a run prints them.

    Raises:
        ArgumentValueError: there is no such function, or the case is none.
    """
    function, _, line = text.partition(": ")
    if function not in {binding.name for binding in bindings()}:
        raise ArgumentValueError(f"{where}: {function!r} is not a function of the suite, should be as a run prints it")
    return function, case_of(line, where) if line else None


def one_case(text: str, where: str) -> tuple[str, Case]:
    """A case, and the function in front of it; "" for all functions of its collective.

    Raises:
        ArgumentValueError: there is no such function, or the case is none.
    """
    line = text.strip()
    function, case = ("", case_of(line, where)) if line.startswith("Case(") else asked(line, where)
    if case is None:
        raise ArgumentValueError(f"{where} is {line!r}, should be one, as a run prints it: FUNCTION: Case(...)")
    return function, case


def case_of(line: str, where: str) -> Case:
    """The case that is printed as this line.

    Raises:
        ArgumentValueError: it is none.
    """
    try:
        return Case.parse(line)
    except (SyntaxError, TypeError, ValueError) as error:
        raise ArgumentValueError(f"{where}: {line!r} is no case, should be one, as a run prints it: {error}") from error
