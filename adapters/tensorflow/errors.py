"""``tf.errors``: what TensorFlow raises when an operation fails, and how the engine's errors become it.

    CollshimError
    └── OpError                      as in TensorFlow an Exception, no ValueError and no RuntimeError
        ├── InvalidArgumentError     shapes that do not fit together, an axis out of range, a dtype that is not reduced
        ├── DeadlineExceededError    a replica did not come in time
        └── UnavailableError         a peer failed, or its process ended

What is raised is always one of these and the engine's own class at once, so that either ``except`` clause
catches it. Source: TensorFlow 2.21, ``tf.errors`` (the constructors) and its recorded answers (the classes).
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

INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
UNAVAILABLE = 14


class OpError(CollshimError):
    """An operation failed.

    Attributes:
        node_def: None here; there is no graph.
        op: None here.
        message: what happened.
        error_code: TensorFlow's number for the kind of failure.
    """

    def __init__(self, node_def: Any, op: Any, message: str, error_code: int, *args: Any) -> None:
        super().__init__(message)
        self.node_def = node_def
        self.op = op
        self.message = message
        self.error_code = error_code


class InvalidArgumentError(OpError):
    """The operation got tensors that it cannot work on."""

    def __init__(self, node_def: Any, op: Any, message: str, *args: Any) -> None:
        super().__init__(node_def, op, message, INVALID_ARGUMENT, *args)


class DeadlineExceededError(OpError):
    """The operation was not over in time."""

    def __init__(self, node_def: Any, op: Any, message: str, *args: Any) -> None:
        super().__init__(node_def, op, message, DEADLINE_EXCEEDED, *args)


class UnavailableError(OpError):
    """A replica that the operation needs is gone."""

    def __init__(self, node_def: Any, op: Any, message: str, *args: Any) -> None:
        super().__init__(node_def, op, message, UNAVAILABLE, *args)


def invalid_argument(message: str) -> CollshimError:
    """An argument refused on this replica: InvalidArgumentError and ValueError, as TensorFlow raises either."""
    return also(ArgumentValueError, InvalidArgumentError)(None, None, message)


def shape_mismatch(message: str) -> CollshimError:
    """The replicas' tensors do not fit together; the text carries what TensorFlow's says."""
    return also(MismatchError, InvalidArgumentError)(None, None, f"Shape mismatch in the collective: {message}")


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
    if "shape" in text.partition("\n")[0]:
        return shape_mismatch(text)
    return also(MismatchError, InvalidArgumentError)(None, None, text)
