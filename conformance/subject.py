"""The subject of the suite: collshim's adapters, the real framework, or another module."""

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

REAL_SECONDS = 40.0  # for a case; the first in a world includes the rendezvous, which is slow in some frameworks
MODULE_SECONDS = 15.0

# torch.distributed itself refuses these over any backend but gloo.
_OF_GLOO = ("torch.distributed.monitored_barrier",)


@dataclass(frozen=True)
class Subject:
    """The subject of the suite.

    Attributes:
        framework: the framework whose dialect is tested; "" for all five.
        prefix: where its functions are found; see ``places``.
        foreign: whether ranks that are processes belong to no world of collshim's.
        python: the interpreter of a real framework's ranks.
        backend: the name of torch's backend; "" for gloo.
        registers: the module that registers the backend, imported by every rank; "" for none.
        seconds: how long the ranks may take for a case; None for the usual time.
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
        """Whether the subject is a framework itself, which accepts only its own arrays."""
        return self.foreign and not self.prefix

    @property
    def module(self) -> str:
        """The dotted name of a user's module; "" for collshim's adapters and for the real framework."""
        return self.prefix.partition("=")[2]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of arrays in the cases unless options say otherwise; a foreign subject runs only with its own."""
        return ("torch",) if self.foreign else tuple(KINDS)

    @property
    def transports(self) -> Mapping[str, Start]:
        """The functions that start ranks, by transport."""
        if not self.foreign:
            return TRANSPORTS
        processes = Foreign(self.framework, self.prefix, self.python, self.backend, self.registers).ranks
        return {"threads": ThreadRanks, "processes": processes} if self.prefix else {"processes": processes}

    def speaks(self, binding: Binding) -> bool:
        """Return whether the binding belongs to a tested dialect."""
        return self.framework in ("", binding.framework.name)

    def bindings(self) -> list[Binding]:
        """Return the spellings of all tested dialects."""
        every = bindings_of(self.framework) if self.framework else bindings()
        return [binding for binding in every if not (self._is_over_another_backend and binding.path in _OF_GLOO)]

    @property
    def _is_over_another_backend(self) -> bool:
        return self.module == "torch.distributed" and self.backend not in ("", "gloo")

    def pools(self) -> Pools:
        """Return the pools of the subject's ranks."""
        usual = (REAL_SECONDS if self.is_real else MODULE_SECONDS) if self.foreign else ANSWER_SECONDS
        return Pools(self.prefix, self.transports, self.seconds or usual)


ADAPTERS = Subject()


def adapter(framework: str, seconds: float | None = None) -> Subject:
    """Return the adapter of one framework."""
    return Subject(framework, known()[framework].adapter, seconds=seconds)


def over(backend: str, name: str | None = None, registers: str | None = None) -> Subject:
    """Return torch.distributed, or the module ``name``, over a backend that the module ``registers`` registers."""
    known_as = registers or ("collshim.torch.distributed" if backend == "collshim" else "")
    return replace(module(name or "torch.distributed", "torch"), backend=backend, registers=known_as)


def module(name: str, framework: str) -> Subject:
    """Return the module ``name`` in place of the framework's own, or of another one: "oneflow.comm=mypkg.comm"."""
    return Subject(framework, name if "=" in name else f"{known()[framework].home}={name}", foreign=True)


def real(framework: str, python: str = sys.executable) -> Subject:
    """Return the framework itself, as installed for the interpreter ``python``."""
    return Subject(framework, "", foreign=True, python=python)
