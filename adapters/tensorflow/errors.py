"""``tf.errors``: TensorFlow's errors of failed operations, and the conversion of the engine's errors to them.

    CollshimError
    └── OpError                      as in TensorFlow an Exception, not a ValueError or RuntimeError
        ├── InvalidArgumentError     shapes or dtypes that do not fit together, an axis out of range, a refused dtype
        ├── DeadlineExceededError    a replica did not arrive in time
        ├── UnavailableError         a peer failed, or its process ended
        ├── NotFoundError, ...       of files: also AlreadyExistsError and PermissionDeniedError
        ├── OutOfRangeError          an iterator is at its end
        └── AbortedError, ...        TensorFlow's others, for ``except`` clauses: collshim never raises them

Every error raised is one of these and of the engine's own class, so that either ``except`` clause catches it. Source:
TensorFlow 2.21, ``tf.errors`` (the constructors, the numbers) and its recorded results (the classes).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, ParamSpec, TypeVar

import torch

from collshim.adapting.absent import saying
from collshim.errors import (
    ArgumentValueError,
    CollshimError,
    DeadlineError,
    MismatchError,
    PeerError,
    also,
)

_P = ParamSpec("_P")
_R = TypeVar("_R")

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
        message: the description of the failure.
        error_code: TensorFlow's number for the kind of failure.
        experimental_payloads: the dict that was passed last to the constructor, or an empty one.
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
    """An OpError whose class defines the number."""

    _code = UNKNOWN

    def __init__(self, node_def: Any, op: Any, message: str, *args: Any) -> None:
        super().__init__(node_def, op, message, self._code, *args)
        self.args = (node_def, op, message, *args)  # to unpickle a copy in another process


class CancelledError(_Coded):
    """The operation was cancelled."""

    _code = CANCELLED


class UnknownError(_Coded):
    """The operation failed for an unknown reason."""

    _code = UNKNOWN


class InvalidArgumentError(_Coded):
    """The operation cannot work on its inputs."""

    _code = INVALID_ARGUMENT


class DeadlineExceededError(_Coded):
    """The operation did not finish in time."""

    _code = DEADLINE_EXCEEDED


class NotFoundError(_Coded):
    """Something that the operation requires does not exist."""

    _code = NOT_FOUND


class AlreadyExistsError(_Coded):
    """Something that the operation should create exists already."""

    _code = ALREADY_EXISTS


class PermissionDeniedError(_Coded):
    """The caller lacks the permission."""

    _code = PERMISSION_DENIED


class ResourceExhaustedError(_Coded):
    """Memory, or another resource, is exhausted."""

    _code = RESOURCE_EXHAUSTED


class FailedPreconditionError(_Coded):
    """The system is not in the required state."""

    _code = FAILED_PRECONDITION


class AbortedError(_Coded):
    """The operation was aborted, usually because of a concurrent one."""

    _code = ABORTED


class OutOfRangeError(_Coded):
    """The operation went past the end of its input."""

    _code = OUT_OF_RANGE


class UnimplementedError(_Coded):
    """The operation is not implemented for these inputs."""

    _code = UNIMPLEMENTED


class InternalError(_Coded):
    """An internal invariant is broken."""

    _code = INTERNAL


class UnavailableError(_Coded):
    """A replica that the operation needs is unavailable."""

    _code = UNAVAILABLE


class DataLossError(_Coded):
    """Data was lost or is damaged."""

    _code = DATA_LOSS


class UnauthenticatedError(_Coded):
    """The caller is not authenticated."""

    _code = UNAUTHENTICATED


def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Wrap a function on tensors so that torch's errors about axes, shapes and dtypes become InvalidArgumentErrors.

    If memory runs out, the error becomes a ResourceExhaustedError.
    """

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except CollshimError:
            raise
        except (IndexError, RuntimeError, ZeroDivisionError) as error:
            text = f"{function.__name__}: {error}"
            if isinstance(error, torch.OutOfMemoryError) or "allocate memory" in text:
                raise ResourceExhaustedError(None, None, text) from error
            raise invalid_argument(text) from error

    return call


def invalid_argument(message: str) -> CollshimError:
    """Return the error for a refused argument: InvalidArgumentError and ValueError, as TensorFlow raises either."""
    return also(ArgumentValueError, InvalidArgumentError)(None, None, message)


def shape_mismatch(message: str) -> CollshimError:
    """Return the error for replicas' tensors that do not fit together, with TensorFlow's words."""
    return mismatch(f"Shape mismatch in the collective: {message}")


def end_of_sequence() -> CollshimError:
    """Return the error for an exhausted iterator."""
    return OutOfRangeError(None, None, "End of sequence")


def mismatch(message: str) -> CollshimError:
    """Return the error for replicas' arguments that do not fit together."""
    return also(MismatchError, InvalidArgumentError)(None, None, message)


def raise_as_tensorflow(error: CollshimError) -> NoReturn:
    """Raise an engine error as both TensorFlow's class and the engine's; raise any other error unchanged."""
    if isinstance(error, OpError):
        raise error
    if isinstance(error, MismatchError):
        raise _mismatch(str(error)) from error
    if isinstance(error, DeadlineError):
        raise also(DeadlineError, DeadlineExceededError)(None, None, str(error)) from error
    if isinstance(error, PeerError):
        raise also(PeerError, UnavailableError)(None, None, str(error)) from error
    raise error


def _mismatch(text: str) -> CollshimError:
    return shape_mismatch(text) if "shape" in text.partition("\n")[0] else mismatch(text)


__getattr__ = saying(__name__, "TensorFlow raises the others")
