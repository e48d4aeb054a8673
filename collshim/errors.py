"""Every error that collshim raises.

    CollshimError
    ├── ArgumentError                 a call refused on this rank; nothing was sent, no sequence number was used
    │   ├── ArgumentTypeError         also a TypeError
    │   ├── ArgumentValueError        also a ValueError
    │   └── ArgumentIndexError        also an IndexError
    ├── WorldError                    no world, two worlds, or a world that contradicts itself; also a RuntimeError
    ├── CommunicationError            something went wrong between ranks; also a RuntimeError
    │   ├── MismatchError             the ranks' calls do not agree
    │   ├── DeadlineError             a wait passed its deadline; also a TimeoutError
    │   ├── NotANumberError           ``options(find_nan=True)`` found NaN; also a FloatingPointError
    │   ├── PeerError                 another rank failed, or its process ended
    │   └── BrokenCommunicatorError   an earlier failure ended this communicator
    └── RankError                     raised by ``launch``: what the first failing rank raised; also a RuntimeError

    UsageWarning                      a call that is carried out, though its result may be left to chance; a UserWarning

An adapter raises a class that is both one of these and what the imitated framework raises (``also``), so that an
``except`` clause written for the framework acts alike.
"""

from __future__ import annotations

import re
import signal
import sys


class CollshimError(Exception):
    """The root of every error that collshim raises."""


class ArgumentError(CollshimError):
    """A call was refused on this rank before anything was sent; the rank may catch this and call again."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument has the wrong type."""


class ArgumentValueError(ArgumentError, ValueError):
    """An argument has the right type and a value, shape or dtype that cannot be used."""


class ArgumentIndexError(ArgumentError, IndexError):
    """A rank, a root or an axis lies outside its range."""


class WorldError(CollshimError, RuntimeError):
    """This rank has no world, already has one, or its environment contradicts itself."""


class CommunicationError(CollshimError, RuntimeError):
    """Something went wrong between ranks, after this rank's own arguments were found good."""


class MismatchError(CommunicationError):
    """The ranks' calls do not agree; every rank gets the same text, no data was moved."""


class DeadlineError(CommunicationError, TimeoutError):
    """A wait passed its deadline; the text names the missing ranks and where they were instead."""


class NotANumberError(CommunicationError, FloatingPointError):
    """A rank's array for a reduction holds NaN (``options(find_nan=True)``); every rank gets the same text."""


class PeerError(CommunicationError):
    """Another rank failed, or its process ended, while this one waited for it."""


class BrokenCommunicatorError(CommunicationError):
    """An earlier failure, which the text repeats, ended this communicator."""


class RankError(CollshimError, RuntimeError):
    """A rank started by ``launch`` failed: the first failure, with its rank.

    What it raised is the cause, which Python shows above this error, with its traceback in the rank.

    Attributes:
        rank: the rank that failed first.
        exception: what it raised, or None where its process ended without raising.
    """

    def __init__(self, message: str, rank: int, exception: BaseException | None) -> None:
        super().__init__(message)
        self.rank = rank
        self.exception = exception

    def __reduce__(self) -> tuple[type[RankError], tuple[str, int, BaseException | None]]:
        return RankError, (str(self), self.rank, self.exception)


class UsageWarning(UserWarning):
    """A call is carried out, though the program leaves its result to chance: see docs/sharp-bits.md."""


def again(failure: CollshimError | None) -> CollshimError:
    """The same failure as an exception of its own, for each wait that raises it, in whatever thread."""
    failure = failure or CommunicationError("no failure")
    own = type(failure)(*failure.args)
    own.__cause__ = failure.__cause__
    return own


def is_of_handler(error: BaseException) -> bool:
    """Whether a handler of a signal raised this, which came while a call was carried out: it is the user's own."""
    codes = {getattr(handler, "__code__", None) for handler in map(signal.getsignal, signal.valid_signals())} - {None}
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code in codes:
            return True
        step = step.tb_next
    return False


def is_of_user(error: BaseException) -> bool:
    """Whether this came into a wait for torch from outside: from a signal's handler, or thrown into the thread."""
    module = type(error).__module__
    return is_of_handler(error) or not (module == "builtins" or module.partition(".")[0] in ("torch", "collshim"))


def text_of(error: BaseException) -> str:
    """An exception's own text; of a user's class whose ``__str__`` fails, that it does."""
    try:
        return str(error)
    except Exception as failure:
        return f"(its text cannot be made: {type(failure).__name__})"


def described(error: BaseException) -> str:
    """An exception's class and text: ``ValueError: no such row``."""
    return f"{type(error).__name__}: {text_of(error)}"


def add_note(error: BaseException, note: str) -> None:
    """Let Python print a note below the exception; before Python 3.11, which has no notes, it is printed at once."""
    if not note:
        return
    if sys.version_info >= (3, 11):
        error.add_note(note)
    else:
        sys.stderr.write(f"{note}\n")


_CONSEQUENCES = re.compile(r"\b(PeerError|BrokenCommunicatorError)(As\w+)?: ")


def is_consequence(description: str) -> bool:
    """Whether an error, as ``described``, only says that another rank failed; also inside a text that C++ has made."""
    return _CONSEQUENCES.search(description) is not None


def local_failure(op: str, error: BaseException, where: str = "") -> CommunicationError:
    """For what one rank could not do, though the others may have."""
    failure = CommunicationError(f"{op}: {described(error)}{where}")
    failure.__cause__ = error
    return failure


_BOTH: dict[tuple[type, type], type[CollshimError]] = {}


def also(ours: type[CollshimError], theirs: type[Exception]) -> type[CollshimError]:
    """A class that is both ``ours`` and ``theirs``; ``ours`` itself where it already derives from ``theirs``."""
    if issubclass(ours, theirs):
        return ours
    if (ours, theirs) not in _BOTH:
        name = f"{ours.__name__}As{theirs.__name__}"
        members = {"__module__": __name__, "__reduce__": lambda self: (_revived, (ours, theirs, self.args))}
        _BOTH.setdefault((ours, theirs), type(name, (ours, theirs), members))  # the first thread's, for all
    return _BOTH[ours, theirs]


def _revived(ours: type[CollshimError], theirs: type[Exception], arguments: tuple[object, ...]) -> CollshimError:
    """An error of such a class on its way from another process."""
    return also(ours, theirs)(*arguments)


def refusal(
    collective: str, what: str, got: object, expected: object, rank: int, size: int, shown: str | None = None
) -> str:
    """The engine's one error sentence: what came, what was expected, on which rank."""
    where = f"rank {rank} of {size}" + (f", {shown}" if shown else "")
    return f"{collective}: {what} is {got}, should be {expected} ({where})"
