"""All errors that collshim raises.

    CollshimError
    ├── ArgumentError                 a call refused on this rank; nothing was sent, no sequence number was used
    │   ├── ArgumentTypeError         also a TypeError
    │   ├── ArgumentValueError        also a ValueError
    │   └── ArgumentIndexError        also an IndexError
    ├── MissingNameError              an adapter lacks a name or a module of its framework
    ├── WorldError                    no world, two worlds, or a world that contradicts itself; also a RuntimeError
    ├── CommunicationError            something went wrong between ranks; also a RuntimeError
    │   ├── MismatchError             the ranks' calls do not agree
    │   ├── DeadlineError             a wait passed its deadline; also a TimeoutError
    │   ├── NotANumberError           ``options(find_nan=True)`` found NaN; also a FloatingPointError
    │   ├── PeerError                 another rank failed, or its process ended
    │   └── BrokenCommunicatorError   an earlier failure ended this communicator
    └── RankError                     raised by ``launch``: the first failing rank's error; also a RuntimeError

    UsageWarning                      a call with a result that may depend on timing; a UserWarning

An adapter raises a class that is both one of these and the imitated framework's exception (``also``), so that an
``except`` clause written for the framework works unchanged.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

FULL = "COLLSHIM_FULL_TRACE"
"""If this variable is 1, tracebacks keep collshim's frames."""


class CollshimError(Exception):
    """The base class of all errors that collshim raises."""


class ArgumentError(CollshimError):
    """A call was refused on this rank before anything was sent; the rank may catch this and call again."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument has the wrong type."""


class ArgumentValueError(ArgumentError, ValueError):
    """An argument has the right type, but a value, shape or dtype that cannot be used."""


class ArgumentIndexError(ArgumentError, IndexError):
    """A rank, a root or an axis lies outside its range."""


class MissingNameError(CollshimError):
    """An adapter lacks a name or a module of its framework; also an AttributeError or a ModuleNotFoundError."""


class WorldError(CollshimError, RuntimeError):
    """This rank has no world, already has one, or its environment contradicts itself."""


class CommunicationError(CollshimError, RuntimeError):
    """Something went wrong between ranks, after this rank's own arguments were accepted."""


class MismatchError(CommunicationError):
    """The ranks' calls do not agree; every rank raises the same message, and no data was moved."""


class DeadlineError(CommunicationError, TimeoutError):
    """A wait passed its deadline; the text names the missing ranks and where they were instead."""


class NotANumberError(CommunicationError, FloatingPointError):
    """A rank's input to a reduction has a NaN (``options(find_nan=True)``); every rank raises the same message."""


class PeerError(CommunicationError):
    """Another rank failed, or its process ended, while this one waited for it."""


class BrokenCommunicatorError(CommunicationError):
    """An earlier failure, which the text repeats, ended this communicator."""


class RankError(CollshimError, RuntimeError):
    """A rank started by ``launch`` failed. The error has the first failure and its rank.

    The cause is the rank's exception, which Python shows above this error, with its traceback in the rank. IPython and
    notebooks show the text and the lines of the program instead, unless ``COLLSHIM_FULL_TRACE`` is 1.

    Attributes:
        rank: the rank that failed first.
        exception: the rank's exception, or None if its process ended without one.
        late: for each rank that had not returned, what it was doing.
        lines: the lines of the program that led to the failure, the innermost first: ``cell 3 line 5: step(x)``.
    """

    def __init__(
        self, message: str, rank: int, exception: BaseException | None, late: Mapping[int, str] | None = None
    ) -> None:
        super().__init__(message)
        self.rank = rank
        self.exception = exception
        self.late = dict(late or {})
        self.lines: list[str] = []

    @property
    def _render_traceback_(self) -> Callable[[], list[str]]:
        """Return the function that IPython calls instead of formatting a traceback, if the error has one."""
        if os.environ.get(FULL) == "1":
            raise AttributeError("IPython formats the traceback")
        return self._rendered

    def _rendered(self) -> list[str]:
        """Return the lines that IPython prints: the text, where it happened, and how to see the whole traceback."""
        first, *details = str(self).split("\n")
        places = [f"  {'called ' if number else ''}at {line}" for number, line in enumerate(self.lines)]
        return [
            f"{type(self).__name__}: {first}",
            *_together(details),
            *(place for place in places if not _is_named(place, details)),
            *getattr(self, "__notes__", ()),
            f"(the whole traceback: %env {FULL}=1, then %tb)",
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        return RankError, (str(self), self.rank, self.exception, self.late), {"lines": self.lines}


def _is_named(place: str, details: Sequence[str]) -> bool:
    """Return whether a line of the text names this line of the program already."""
    site = place.strip().removeprefix("called ").partition(": ")[0]
    return any(re.search(rf"{re.escape(site)}\b", line) for line in details)


_OF_RANK = re.compile(r"  rank (\d+): (.*)")


def _together(details: Sequence[str]) -> list[str]:
    """Return the lines of a text, with one for the ranks of which they say the same: ``ranks 0, 2: barrier()``."""
    found = [_OF_RANK.fullmatch(line) for line in details]
    ranks: dict[str, list[str]] = {}
    for each in filter(None, found):
        ranks.setdefault(each[2], []).append(each[1])
    of_ranks = [f"  rank{'s' if len(who) > 1 else ''} {', '.join(who)}: {what}" for what, who in ranks.items()]
    return of_ranks + [line for line, each in zip(details, found, strict=True) if each is None]


class UsageWarning(UserWarning):
    """A call was carried out, but its result may depend on timing: see docs/sharp-bits.md."""


def again(failure: CollshimError | None) -> CollshimError:
    """Return a copy of a failure, so that each wait, in whatever thread, raises its own exception."""
    failure = failure or CommunicationError("no failure")
    own = type(failure)(*failure.args)
    own.__cause__ = failure.__cause__
    return own


def is_of_handler(error: BaseException) -> bool:
    """Return whether a signal handler of the user's raised this while a call was carried out."""
    codes = {getattr(handler, "__code__", None) for handler in map(signal.getsignal, signal.valid_signals())} - {None}
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code in codes:
            return True
        step = step.tb_next
    return False


def is_of_user(error: BaseException) -> bool:
    """Return whether a wait for torch was interrupted by a signal handler, or an exception thrown into the thread."""
    module = type(error).__module__
    return is_of_handler(error) or not (module == "builtins" or module.partition(".")[0] in ("torch", "collshim"))


def text_of(error: BaseException) -> str:
    """Return an exception's text, or a note if a user's class fails to give one."""
    try:
        return str(error)
    except Exception as failure:
        return f"(its text cannot be made: {type(failure).__name__})"


def described(error: BaseException) -> str:
    """Return an exception's class and text: ``ValueError: no such row``."""
    return f"{type(error).__name__}: {text_of(error)}"


def add_note(error: BaseException, note: str) -> None:
    """Add a note that Python prints below the exception.

    Python 3.10 does not print notes, so this prints it at once. pytest, which captures that, shows notes itself.
    """
    if not note:
        return
    if sys.version_info >= (3, 11):
        error.add_note(note)
    else:
        vars(error)["__notes__"] = [*getattr(error, "__notes__", ()), note]
        sys.stderr.write(f"{note}\n")


_CONSEQUENCES = re.compile(r"\b(PeerError|BrokenCommunicatorError)(As\w+)?: ")


def is_consequence(description: str) -> bool:
    """Return whether an error, as ``described``, only reports that another rank failed, even inside a text from C++."""
    return _CONSEQUENCES.search(description) is not None


def local_failure(op: str, error: BaseException, where: str = "") -> CommunicationError:
    """Return the error of a failure on this rank, though the other ranks may have succeeded."""
    failure = CommunicationError(f"{op}: {described(error)}{where}")
    failure.__cause__ = error
    return failure


_BOTH: dict[tuple[type, type], type[CollshimError]] = {}


_Ours = TypeVar("_Ours", bound=CollshimError)


def also(ours: type[_Ours], theirs: type[Exception]) -> type[_Ours]:
    """Return a class that is both ``ours`` and ``theirs``; ``ours`` itself if it already derives from ``theirs``."""
    if issubclass(ours, theirs):
        return ours
    if (ours, theirs) not in _BOTH:
        name = f"{ours.__name__}As{theirs.__name__}"
        members = {"__module__": __name__, "__reduce__": lambda self: (_revive, (ours, theirs, self.args))}
        _BOTH.setdefault((ours, theirs), type(name, (ours, theirs), members))  # if threads race, the first one's
    return cast("type[_Ours]", _BOTH[ours, theirs])


def _revive(ours: type[CollshimError], theirs: type[Exception], arguments: tuple[object, ...]) -> CollshimError:
    """Restore an error of such a class that comes from another process."""
    return also(ours, theirs)(*arguments)


def refusal(
    collective: str, what: str, got: object, expected: object, rank: int, size: int, shown: str | None = None
) -> str:
    """Return the engine's standard error text: the value, the expected value, and the rank."""
    where = f"rank {rank} of {size}" + (f", {shown}" if shown else "")
    return f"{collective}: {what} is {got}, should be {expected} ({where})"
