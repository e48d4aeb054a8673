"""``tf.errors``: what TensorFlow raises when an operation fails, and how the engine's errors become it.

    CollshimError
    └── OpError                      as in TensorFlow an Exception, no ValueError and no RuntimeError
        ├── InvalidArgumentError     shapes or dtypes that do not fit together, an axis out of range, a dtype refused
        ├── DeadlineExceededError    a replica did not come in time
        ├── UnavailableError         a peer failed, or its process ended
        └── AbortedError, ...        TensorFlow's others, for ``except`` clauses: nothing here raises them

What is raised is always one of these and the engine's own class at once, so that either ``except`` clause
catches it. Source: TensorFlow 2.21, ``tf.errors`` (the constructors, the numbers) and its recorded answers (the
classes).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from collshim.errors import (
    ArgumentValueError,
    CollshimError,
    DeadlineError,
    MismatchError,
    PeerError,
    also,
)

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


class OpError(CollshimError):
    """An operation failed.

    Attributes:
        node_def: None here; there is no graph.
        op: None here.
        message: what happened.
        error_code: TensorFlow's number for the kind of failure.
        experimental_payloads: the dict that the constructor was given last, or an empty one.
    """

    def __init__(self, node_def: Any, op: Any, message: str, error_code: int, *args: Any) -> None:
        super().__init__(node_def, op, message, error_code, *args)
        self.node_def = node_def
        self.op = op
        self.message = message
        self.error_code = error_code
        self.experimental_payloads: dict[str, bytes] = dict(args[0]) if args and isinstance(args[0], dict) else {}

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r})"


class _Coded(OpError):
    """An OpError whose class says the number."""

    _code = UNKNOWN

    def __init__(self, node_def: Any, op: Any, message: str, *args: Any) -> None:
        super().__init__(node_def, op, message, self._code, *args)
        self.args = (node_def, op, message, *args)  # what a copy in another process is made of


class CancelledError(_Coded):
    """The operation was called off."""

    _code = CANCELLED


class UnknownError(_Coded):
    """The operation failed, and nobody knows why."""

    _code = UNKNOWN


class InvalidArgumentError(_Coded):
    """The operation got tensors that it cannot work on."""

    _code = INVALID_ARGUMENT


class DeadlineExceededError(_Coded):
    """The operation was not over in time."""

    _code = DEADLINE_EXCEEDED


class NotFoundError(_Coded):
    """Something that the operation asked for is not there."""

    _code = NOT_FOUND


class AlreadyExistsError(_Coded):
    """Something that the operation was to make is there already."""

    _code = ALREADY_EXISTS


class PermissionDeniedError(_Coded):
    """The caller may not do this."""

    _code = PERMISSION_DENIED


class ResourceExhaustedError(_Coded):
    """Memory, or something else that there is little of, is used up."""

    _code = RESOURCE_EXHAUSTED


class FailedPreconditionError(_Coded):
    """The system is not in the state that the operation needs."""

    _code = FAILED_PRECONDITION


class AbortedError(_Coded):
    """The operation was ended, mostly because another one was under way."""

    _code = ABORTED


class OutOfRangeError(_Coded):
    """The operation went past the end of its input."""

    _code = OUT_OF_RANGE


class UnimplementedError(_Coded):
    """There is no such operation for these tensors."""

    _code = UNIMPLEMENTED


class InternalError(_Coded):
    """Something that must not happen has happened."""

    _code = INTERNAL


class UnavailableError(_Coded):
    """A replica that the operation needs is gone."""

    _code = UNAVAILABLE


class DataLossError(_Coded):
    """Data was lost or is damaged."""

    _code = DATA_LOSS


class UnauthenticatedError(_Coded):
    """Nobody knows who the caller is."""

    _code = UNAUTHENTICATED


def invalid_argument(message: str) -> CollshimError:
    """An argument refused on this replica: InvalidArgumentError and ValueError, as TensorFlow raises either."""
    return also(ArgumentValueError, InvalidArgumentError)(None, None, message)


def shape_mismatch(message: str) -> CollshimError:
    """The replicas' tensors do not fit together; the text carries what TensorFlow's says."""
    return mismatch(f"Shape mismatch in the collective: {message}")


def end_of_sequence() -> CollshimError:
    """An iterator has no element more."""
    return OutOfRangeError(None, None, "End of sequence")


def mismatch(message: str) -> CollshimError:
    """What the replicas give does not belong together."""
    return also(MismatchError, InvalidArgumentError)(None, None, message)


@contextmanager
def as_tensorflow() -> Iterator[None]:
    """Engine errors raised inside come out as TensorFlow's class and the engine's at once, with the engine's text."""
    try:
        yield
    except OpError:
        raise
    except MismatchError as error:
        raise _mismatch(str(error)) from error
    except DeadlineError as error:
        raise also(DeadlineError, DeadlineExceededError)(None, None, str(error)) from error
    except PeerError as error:
        raise also(PeerError, UnavailableError)(None, None, str(error)) from error


def _mismatch(text: str) -> CollshimError:
    return shape_mismatch(text) if "shape" in text.partition("\n")[0] else mismatch(text)
