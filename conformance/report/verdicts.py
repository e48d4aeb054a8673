"""The verdict on the differences of a case: a failure, a declared fault of the real framework, or a known failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import Case
from collshim.conformance.report.listed import NOTHING, Listed
from collshim.conformance.report.results import DEVIATION, FAIL, PASS
from collshim.conformance.report.upstream import Fault, declared
from collshim.conformance.subject import Subject

UNASKED = "not run: another case of the family has shown it"
BESIDE = "beside a known deviation"
ADAPTER = "collshim's adapters"
GIVEN_UP = "not run: the ranks hung or ended before"


@dataclass
class Verdicts:
    """The declarations about a subject, and which of them the run confirmed.

    Attributes:
        resolves_here: whether this interpreter can find which functions are missing.
        must_show: whether a declared fault must be seen; a user's module need not have torch's faults.
        xfails: the entries of a file that are known to fail, which must occur.
        subject: the name of the subject.
        upstream: the name of the owner of the declared faults.
    """

    faults: Sequence[Fault] = ()
    resolves_here: bool = True
    must_show: bool = True
    xfails: Listed = NOTHING
    subject: str = ADAPTER
    upstream: str = "the framework itself"
    _cases: Counter[tuple[Fault, str]] = field(default_factory=Counter)
    _shown: Counter[tuple[Fault, str]] = field(default_factory=Counter)
    _named: Counter[tuple[str, Case | None]] = field(default_factory=Counter)

    @classmethod
    def of(cls, subject: Subject, xfails: Listed = NOTHING) -> Verdicts:
        """Make the verdicts for a subject; real frameworks have declared faults, which a user's module may share."""
        faults = declared(subject.framework) if subject.foreign else ()
        upstream = f"{subject.framework} itself"
        name = subject.module or (upstream if subject.is_real else ADAPTER)
        return cls(faults, not subject.is_real, not subject.module, xfails, name, upstream)

    def verdict(self, binding: Binding, case: Case, lines: Sequence[str]) -> tuple[str, str]:
        """Return the outcome of a case with these differences, and the reason."""
        text = "\n".join(lines)
        entry = self.xfails.entry(binding.name, case)
        if entry is not None:
            self._named[entry] += bool(lines)
            return (DEVIATION, f"named in {self.xfails.file}\n{text}") if lines else (PASS, "")
        faults = self._faults(binding, case)
        if not faults:
            return (FAIL, text) if lines else (PASS, "")
        self._cases[faults[0], binding.name] += 1  # a case that the first fault explains need not show the others
        if not lines:
            return PASS, ""
        found = [next((fault for fault in faults if fault.explains(line, case)), None) for line in lines]
        if None in found:
            return FAIL, self._unexplained(lines, found)
        shown = dict.fromkeys(filter(None, found))
        self._shown.update((fault, binding.name) for fault in shown)
        return DEVIATION, "\n".join([*(fault.reason for fault in shown), text])

    def _unexplained(self, lines: Sequence[str], found: Sequence[Fault | None]) -> str:
        """Return the differences that no fault explains, then the faults and the differences that they explain."""
        new = [line for line, fault in zip(lines, found, strict=True) if fault is None]
        known = dict.fromkeys(fault.reason for fault in found if fault is not None)
        old = [line for line, fault in zip(lines, found, strict=True) if fault is not None]
        return "\n".join([*new, *(f"{BESIDE} of {self.upstream}: {reason}" for reason in known), *old])

    def owner(self, binding: Binding, case: Case) -> str:
        """Return the owner of a known deviation in this case."""
        return f"{self.subject}, named in {self.xfails.file}" if self.is_named(binding, case) else self.upstream

    def known(self, binding: Binding, case: Case) -> tuple[str, str] | None:
        """Return the outcome of a case that is not run because it would end or hang the ranks, as one did before."""
        faults = self._faults(binding, case)
        shown = next((fault for fault in faults if fault.lasting and self._shown[fault, binding.name]), None)
        return None if shown is None else (DEVIATION, f"{shown.reason}\n{UNASKED}")

    def unasked(self, binding: Binding, case: Case) -> tuple[str, str]:
        """Return the outcome of a case whose function was given up, because it hangs or ends the ranks."""
        if self.is_named(binding, case):
            return DEVIATION, f"named in {self.xfails.file}\n{GIVEN_UP}"
        return FAIL, GIVEN_UP

    def is_named(self, binding: Binding, case: Case) -> bool:
        """Return whether a file names the case as known to fail."""
        return self.xfails.entry(binding.name, case) is not None

    def stale(self, of: Binding | None = None) -> list[str]:
        """Return the declarations that did not hold for a function that was tested, and the file's entries that agree.

        ``of`` is the only function whose declarations are checked; None for all.
        """
        named = [
            _entry_text(entry) for entry, failures in self._named.items() if not failures and _is_name_of(entry[0], of)
        ]
        agreeing = [f"{text}: named in {self.xfails.file}, but agrees" for text in named]
        if not self.must_show:
            return agreeing
        return agreeing + [
            f"{name}: known to deviate, but agrees: {fault.reason}"
            for fault, name in self._cases
            if not self._shown[fault, name] and not fault.seldom and _is_name_of(name, of)
        ]

    def _faults(self, binding: Binding, case: Case) -> list[Fault]:
        return [fault for fault in self.faults if fault.has(binding.name, case)]


def _is_name_of(name: str, binding: Binding | None) -> bool:
    return binding is None or binding.name == name


def _entry_text(entry: tuple[str, Case | None]) -> str:
    function, case = entry
    return function if case is None else f"{function}: {case}"
