"""Declared faults of the real frameworks themselves, and limits of their CPU backends: one file per framework.

    [[fault]]
    reason = "gloo refuses parts of unequal lengths, which torch's documentation has"
    functions = ["torch.distributed.all_gather", "torch.distributed.all_gather[async]"]
    cases = { unequal = true }
    seen = "invalid tensor size"

A fault names functions, as bindings do, and a family of cases by parameters, without wildcards: those of ``Case``, each
with its value or a list of values, and ``FURTHER``. ``seen`` is a pattern. A case may belong to several families: every
difference must match the pattern of one of them, so that a fault does not hide another. A fault that no case of a
function shows any longer is reported and fails the run, as an undeclared difference does.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from collshim.conformance.cases import Case

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent

FURTHER: Mapping[str, Callable[[Case], Any]] = {
    "ndim": lambda case: len(case.shape),
    "empty": lambda case: 0 in case.shape,
    "unequal": lambda case: case.lengths is not None,
    "grouped": lambda case: case.group is not None,
    "members": lambda case: len(case.ranks),
    "large": lambda case: len(case.shape) == 2 and case.shape[1] > 1000,
}
"""The parameters that may define a family, besides a case's own."""

_KNOWN = {*FURTHER, *(field.name for field in fields(Case))}


@dataclass(frozen=True, eq=False)
class Fault:
    """A declared fault.

    Attributes:
        reason: what is wrong, in one sentence.
        functions: the names of bindings.
        cases: the family of cases, by parameter.
        seen: a pattern that matches every difference caused by the fault.
        lasting: whether a case ends, hangs or spoils the ranks, so that only one case of each function runs.
        seldom: whether it depends on timing, or on the machine, so that it need not show.
        off_root: whether only ranks other than the root show it.
    """

    reason: str
    functions: tuple[str, ...]
    cases: Mapping[str, Any]
    seen: str = ""
    lasting: bool = False
    seldom: bool = False
    off_root: bool = False

    def has(self, function: str, case: Case) -> bool:
        """Return whether a case of a function belongs to this family."""
        return function in self.functions and all(_holds(case, name, value) for name, value in self.cases.items())

    def explains(self, line: str, case: Case) -> bool:
        """Return whether the fault may cause this difference, which begins with the rank."""
        is_of_root = line.startswith(f"rank {case.root_rank}: ")
        return not (self.off_root and is_of_root) and re.search(self.seen, line) is not None


def declared(framework: str, folder: Path = FOLDER) -> list[Fault]:
    """Return the declared faults of a framework.

    Raises:
        ValueError: a fault has no reason, no function, or an unknown parameter.
    """
    path = folder / f"{framework}.toml"
    if not path.exists():
        return []
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("fault", [])
    return [_read(path.name, entry) for entry in entries]


def _read(file: str, entry: Mapping[str, Any]) -> Fault:
    unknown_parameters = set(entry.get("cases", {})) - _KNOWN
    if unknown_parameters or not entry.get("reason") or not entry.get("functions"):
        what = (
            f"has {', '.join(sorted(unknown_parameters))}" if unknown_parameters else "has no reason, or no functions"
        )
        raise ValueError(
            f"{file}: the fault {entry.get('reason', '')!r} {what}, should be as upstream/__init__.py describes"
        )
    options = {name: entry[name] for name in ("seen", "lasting", "seldom", "off_root") if name in entry}
    return Fault(entry["reason"], tuple(entry["functions"]), dict(entry.get("cases", {})), **options)


def _holds(case: Case, name: str, value: Any) -> bool:
    parameter = FURTHER[name](case) if name in FURTHER else getattr(case, name)
    actual = list(parameter) if isinstance(parameter, tuple) else parameter
    return actual in value if isinstance(value, list) and not isinstance(actual, list) else actual == value
