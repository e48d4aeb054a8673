"""``Work``: what every collective returns at once, and what its caller waits for; failures that nobody waited for yet.

Such a failure, a deferred error, is raised by the wait of the next call, not by its post: when a rank learns of a
failure depends on when the others called, so a post that raised would take no place in the order of calls on this
rank, though it had on others.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from numbers import Real
from typing import Any, Generic, TypeVar, cast

from torch import Tensor

from collshim.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    CollshimError,
    CommunicationError,
    DeadlineError,
    is_of_handler,
)

_PAUSE = 1e-4
"""Seconds between two looks at a work that another thread waits for."""

T = TypeVar("T")
U = TypeVar("U")


class Work(Generic[T]):
    """A posted collective. ``wait`` returns its result; on CUDA that orders streams and does not block the host.

    A work may be waited for twice, by two threads at once, or never: its peers complete all the same. A failure
    that was not waited for is raised by the wait of the communicator's next call, once that call is over; waited for
    again, the work gives its own result. So ranks stay in step, whenever each of them learns of a failure.

    Attributes:
        token: after ``wait``, on a rank whose result is None though others differentiate through the call: the
            tensor that lets this rank join their backward. Else None.
        source: after ``wait``, the rank in the group that a recv was served by. Else None.

    What a transport's own work reads and writes are its ``inputs`` and ``outputs``; ``spans`` their addresses, where
    they were looked for, and ``version`` what tells whether the input was changed, where that can be told.

    A transport's own works derive from this class: they say when the call is over, and what its outputs are in torch's
    terms. ``Posting`` sets how the result reaches the caller, by ``_out``, the caller's own place; or else by
    ``_join``, which makes the result a part of the graph where some rank needs a gradient, and ``_kind``, which makes
    an array of the caller's kind of each tensor, after all views.
    """

    token: Tensor | None = None
    source: int | None = None
    inputs: Any = None
    outputs: Any = None
    spans: Any = None
    version: int | None = None
    joint = False
    """Whether some rank needs a gradient, once the call is over; False where the ranks did not tell each other."""

    _call: Any = None

    _out: Any = None
    _kind: Callable[[Tensor], Any] | None = None
    _join: Callable[[Work[Any], Any], Any] | None = None
    _timeout: float | None = None
    _views: tuple[Callable[[Any], Any], ...] = ()
    _is_simple = True
    """Whether the caller sees ``_out``, or else the outputs as they are, where no rank needs a gradient."""

    _earlier: tuple[DeferredErrors, list[Work[Any]]] | None = None
    _warnings: tuple[Callable[[], None], ...] = ()
    _pending: Any = None
    _number = -1
    _claim: bool | None = None
    _settled = False
    _raw: Any = None
    _result: Any = None
    _failure: Exception | None = None
    _raises_once = False
    _polled: float | None = None

    def __init__(self) -> None:
        self._claim = True

    def __repr__(self) -> str:
        call = f": {self.call}" if self.call is not None else ""
        return f"<Work{call}, {self._state()}>"

    def _state(self) -> str:
        """What is known already: to ask whether it is over would move it, from whatever thread a debugger asks."""
        return "failed" if self._failure is not None else "waited for" if self._settled else "not waited for"

    @property
    def call(self) -> Any:
        """What was asked of the collective, where a transport carries it out."""
        return self._call

    def _complete(self, timeout: float | None) -> Any:
        """Wait until the call is over; its outputs. ``timeout`` in seconds, None for no deadline."""
        raise NotImplementedError

    def _is_over(self) -> bool:
        """Whether ``_complete`` would return, or raise, at once."""
        raise NotImplementedError

    def _own_failure(self) -> CollshimError:
        """What this rank is to raise for a call that has failed: an exception of its own."""
        raise NotImplementedError

    def wait(self, timeout: float | None = None) -> T:
        """The result, once it is there.

        Args:
            timeout: seconds, 0 or more; None for the communicator's deadline.

        Raises:
            ArgumentError: no such timeout; the work may be waited for again.
            MismatchError, DeadlineError, PeerError, BrokenCommunicatorError: see ``collshim.errors``.
        """
        if timeout is not None:
            timeout = _seconds(timeout)
        while not self._settled:
            try:
                del self._claim  # of two threads one has it, and the other waits for that one
            except AttributeError:
                self._await_other(timeout)
                continue
            try:
                outputs = self._complete(self._timeout if timeout is None else timeout)
                if self.joint or not self._is_simple:
                    outputs = self._made(outputs)
                self._result = outputs if self._out is None else self._out
            except BaseException as failure:
                if not isinstance(failure, Exception) or is_of_handler(failure):  # of a signal: the wait may be resumed
                    self._claim = True
                    raise
                self._keep(failure)
            self._settled = True
        pending, self._pending = self._pending, None
        if pending is not None:  # as in ``free``
            with pending.lock:
                if pending.latest is not None and pending.latest[0] is self:
                    pending.latest = None
                else:
                    pending.entries.pop(self._number, None)
        if self._failure is not None:
            self._raise(self._failure)
        return self._result  # type: ignore[no-any-return]

    def done(self) -> bool:
        """Whether ``wait`` would return, or raise, at once.

        Polling counts as waiting: when the communicator's deadline has passed since the first time, the work fails.
        """
        is_done = self._settled or (self._claim is not None and (self._is_over() or self._is_late()))
        if is_done and self._pending is not None:
            self.free()
        return is_done

    def free(self) -> None:
        """Nobody will wait for it, as with MPI_Request_free: the call completes, and no warning names it."""
        pending, self._pending = self._pending, None
        if pending is not None:
            with pending.lock:
                latest = pending.latest
                if latest is not None and latest[0] is self:
                    pending.latest = None
                else:
                    pending.entries.pop(self._number, None)

    def warn(self, warning: Callable[[], None]) -> None:
        """The wait gives this warning, once the call is over."""
        self._warnings, self._is_simple = (*self._warnings, warning), False

    def result(self) -> T:
        """The result of a work that is done; waits where it is not."""
        return self.wait()

    def exception(self) -> BaseException | None:
        """What a finished work raises, or None."""
        if not self.done():
            return None
        try:
            self.wait()
        except Exception as failure:
            return failure
        return None

    def then(self, view: Callable[[Any], U]) -> Work[U]:
        """This work with ``view`` applied to its torch result, once; the caller's array kind is made after it."""
        if self._settled:
            self.wait()
            again = CompletedWork[U](self._result if self._kind is None else self._raw, self._call)
            again.token, again.source, again._kind, again._views = self.token, self.source, self._kind, (view,)
            again._is_simple = False
            return again
        self._views, self._is_simple = (*self._views, view), False
        return cast("Work[U]", self)

    def _made(self, result: Any) -> Any:
        """What the caller sees of what the call gave."""
        for warning in self._warnings:
            warning()
        if self._out is not None:
            result, self._out = self._out, None
        elif self.joint and self._join is not None:
            result = self._join(self, result)
        for view in self._views:
            result = view(result)
        if self._earlier is not None:
            self._failure = self._earlier[0].taken(self._earlier[1])
            self._raises_once = True
        self._raw, self._join = result, None
        return result if self._kind is None else _converted(result, self._kind)

    def _keep(self, failure: Exception) -> None:
        """The work has failed; an earlier failure that was not raised yet is its cause."""
        self._failure = failure
        if self._earlier is not None and isinstance(failure, CommunicationError):
            failure.__cause__ = failure.__cause__ or self._earlier[0].taken(self._earlier[1])

    def _raise(self, failure: Exception) -> None:
        """The work's own failure, every time; an earlier call's, once."""
        if self._raises_once:
            self._failure = None
            raise failure from failure.__cause__
        raise failure

    def _await_other(self, timeout: float | None) -> None:
        limit = math.inf if timeout is None else time.monotonic() + timeout
        while not self._settled and self._claim is None:
            if time.monotonic() >= limit:
                raise DeadlineError(f"wait: another thread still waits for this work after {timeout:g} s")
            time.sleep(_PAUSE)

    def _is_late(self) -> bool:
        """Whether the deadline has passed since ``done`` was first asked; then the wait is made, and fails."""
        now = time.monotonic()
        self._polled = now if self._polled is None else self._polled
        if self._timeout is None or now - self._polled < self._timeout:
            return False
        try:
            self.wait(0.0)
        except Exception:
            if not self._settled:
                raise
        return self._settled


class DeferredErrors(list[Work[Any]]):
    """A rank's calls that failed before they were waited for."""

    def discard(self, call: Work[Any]) -> None:
        """The rank has waited for this one: its failure need not be raised again."""
        with suppress(ValueError):  # another thread has raised it meanwhile
            if self:
                self.remove(call)

    def taken(self, calls: list[Work[Any]]) -> CollshimError | None:
        """The first of these failures that has not been raised meanwhile; none of them will be raised again."""
        pending = [call for call in calls if call in self]
        for call in pending:
            self.discard(call)
        return pending[0]._own_failure() if pending else None


class CompletedWork(Work[T]):
    """A call that is over."""

    def __init__(self, outputs: Any, call: Any = None) -> None:
        self._claim = True
        self.outputs = outputs
        self._call = call

    def wait(self, timeout: float | None = None) -> T:
        """See ``Work.wait``."""
        if not self._is_simple or not (timeout is None or (type(timeout) is float and timeout >= 0)):
            return super().wait(timeout)
        if self._pending is not None:
            self.free()
        return self.outputs if self._out is None else self._out  # type: ignore[no-any-return]

    def _complete(self, timeout: float | None) -> Any:
        return self.outputs

    def _is_over(self) -> bool:
        return True

    def _state(self) -> str:
        return "over"


COMPLETE = CompletedWork[None](None)
"""Of a call whose result lies where its caller wanted it, when it was posted."""


class Together(Work[list[Any]]):
    """Several works as one, whose result is the list of theirs."""

    def __init__(self, works: Sequence[Work[Any]]) -> None:
        super().__init__()
        self._works = works

    def wait(self, timeout: float | None = None) -> list[Any]:
        """See ``Work.wait``; again each part is asked, since a call on CUDA may fail after its wait."""
        if self._settled and self._failure is None:
            for work in self._works:
                work.wait(timeout)
        return super().wait(timeout)

    def _complete(self, timeout: float | None) -> list[Any]:
        """All results; where some failed, the first failure, once every work has been waited for."""
        limit = math.inf if timeout is None else time.monotonic() + timeout
        results, failures, earlier = list[Any](), list[Exception](), list[Exception]()
        for work in self._works:
            rest = None if timeout is None else max(0.0, limit - time.monotonic())
            try:
                results.append(work.wait(rest))
            except Exception as failure:
                if work._failure is failure:
                    failures.append(failure)
                else:
                    earlier.append(failure)
                    results.append(work.wait(rest))  # which gives its own result now
        if failures:
            raise failures[0]
        if earlier:
            self._failure, self._raises_once = earlier[0], True
        return results

    def _is_over(self) -> bool:
        return all(work.done() for work in self._works)


def _seconds(timeout: Any) -> float:
    expected = "a number of seconds, 0 or more"
    if isinstance(timeout, bool) or not isinstance(timeout, Real):
        raise ArgumentTypeError(f"wait: timeout is {timeout!r}, should be {expected}")
    if not float(timeout) >= 0:
        raise ArgumentValueError(f"wait: timeout is {timeout!r}, should be {expected}")
    return float(timeout)


def _converted(result: Any, kind: Callable[[Tensor], Any]) -> Any:
    if isinstance(result, Tensor):
        return kind(result)
    if isinstance(result, list | tuple) and type(result) in (list, tuple):
        return type(result)(_converted(item, kind) for item in result)
    return result
