"""What the suite is run on: collshim's adapters, the real framework, or another module."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

from collshim.conformance.bindings import bindings, bindings_of
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.kinds import KINDS
from collshim.conformance.foreign.ranks import Foreign
from collshim.conformance.pool import ANSWER_SECONDS, TRANSPORTS, Pools, Start
from collshim.conformance.thread_ranks import ThreadRanks
from collshim.frameworks import known

REAL_SECONDS = 40.0  # for a case; the first of a world includes the rendezvous, which takes some frameworks long
MODULE_SECONDS = 15.0

# What torch.distributed itself refuses over any backend but gloo.
_OF_GLOO = ("torch.distributed.monitored_barrier",)


@dataclass(frozen=True)
class Subject:
    """What the suite is run on.

    Attributes:
        framework: the one whose dialect is spoken; "" for all five.
        prefix: where its functions are found, see ``places``.
        foreign: whether ranks that are processes are in no world of collshim's.
        python: the interpreter of a real framework's ranks.
        backend: torch's, by name; "" for gloo.
        registers: the module that registers the backend, which every rank imports; "" for none.
        seconds: that the ranks may take for a case; None for the usual ones.
    """

    framework: str = ""
    prefix: str = "collshim."
    foreign: bool = False
    python: str = sys.executable
    backend: str = ""
    registers: str = ""
    seconds: float | None = None

    @property
    def is_real(self) -> bool:
        """Whether it is a framework itself, which takes its own arrays alone."""
        return self.foreign and not self.prefix

    @property
    def module(self) -> str:
        """The dotted name of somebody's module; "" for collshim's adapters and for the real framework."""
        return self.prefix.partition("=")[2]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of arrays that are given, unless others are asked for: what is not collshim's takes its own."""
        return ("torch",) if self.foreign else tuple(KINDS)

    @property
    def transports(self) -> Mapping[str, Start]:
        """How ranks are started, by what they are."""
        if not self.foreign:
            return TRANSPORTS
        processes = Foreign(self.framework, self.prefix, self.python, self.backend, self.registers).ranks
        return {"threads": ThreadRanks, "processes": processes} if self.prefix else {"processes": processes}

    def speaks(self, binding: Binding) -> bool:
        """Whether the binding is of a dialect that is tested."""
        return self.framework in ("", binding.framework.name)

    def bindings(self) -> list[Binding]:
        """The spellings of all dialects that are tested."""
        every = bindings_of(self.framework) if self.framework else bindings()
        return [binding for binding in every if not (self._is_over_another_backend and binding.path in _OF_GLOO)]

    @property
    def _is_over_another_backend(self) -> bool:
        return self.module == "torch.distributed" and self.backend not in ("", "gloo")

    def pools(self) -> Pools:
        """Its ranks."""
        usual = (REAL_SECONDS if self.is_real else MODULE_SECONDS) if self.foreign else ANSWER_SECONDS
        return Pools(self.prefix, self.transports, self.seconds or usual)


ADAPTERS = Subject()


def adapter(framework: str, seconds: float | None = None) -> Subject:
    """The adapter of one framework."""
    return Subject(framework, known()[framework].adapter, seconds=seconds)


def over(backend: str, name: str | None = None, registers: str | None = None) -> Subject:
    """``torch.distributed``, or the module ``name`` in its place, over a backend, which ``registers`` makes known."""
    known_as = registers or ("collshim.torch.distributed" if backend == "collshim" else "")
    return replace(module(name or "torch.distributed", "torch"), backend=backend, registers=known_as)


def module(name: str, framework: str) -> Subject:
    """The module ``name``, in the place of the framework's own, or of another: "oneflow.comm=mypkg.comm"."""
    return Subject(framework, name if "=" in name else f"{known()[framework].home}={name}", foreign=True)


def real(framework: str, python: str = sys.executable) -> Subject:
    """The framework itself, as the interpreter ``python`` has it."""
    return Subject(framework, "", foreign=True, python=python)
