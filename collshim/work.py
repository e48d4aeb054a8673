"""``Work``: what every collective returns at once, and what its caller waits for."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, Generic, Protocol, TypeVar, cast

from torch import Tensor

from collshim.errors import ArgumentTypeError, ArgumentValueError, DeadlineError

_PAUSE = 1e-4
"""Seconds between two looks at a work that another thread waits for."""

T = TypeVar("T")
U = TypeVar("U")


class Pending(Protocol):
    """What a transport promises of a posted call; ``token`` and ``source`` are those of its ``Work``."""

    token: Tensor | None

    @property
    def source(self) -> int | None:
        """The rank that served a recv."""
        ...

    def wait(self, timeout: float | None) -> Any:
        """Return the call's outputs in torch's terms; ``timeout`` in seconds, None for the communicator's."""

    def done(self) -> bool:
        """Whether ``wait`` would return, or raise, at once."""
        ...


class EarlierError(Exception):
    """What ``Pending.wait`` raises where its call went well, but an earlier one failed and nobody waited for that."""

    def __init__(self, failure: Exception) -> None:
        super().__init__(failure)
        self.failure = failure


class Work(Generic[T]):
    """A posted collective. ``wait`` returns its result; on CUDA that orders streams and does not block the host.

    A work may be waited for twice, by two threads at once, or never: its peers are served all the same. A failure
    that nobody waited for is raised by the wait of the communicator's next call, once that call is over; waited for
    again, the work gives its own result. So ranks stay in step, whenever each of them hears of a failure.

    Attributes:
        token: after ``wait``, on a rank whose result is None though others differentiate through the call: the
            tensor that lets this rank join their backward. Else None.
        source: after ``wait``, the rank in the group that a recv was served by. Else None.
    """

    token: Tensor | None = None
    source: int | None = None
    _settled = False
    _views: tuple[Callable[[Any], Any], ...] = ()
    _raw: Any = None
    _result: Any = None
    _failure: BaseException | None = None
    _pending: Any = None
    _polled: float | None = None

    def __init__(
        self,
        pending: Pending,
        views: tuple[Callable[[Any], Any], ...] = (),
        kind: Callable[[Tensor], Any] | None = None,
        timeout: float | None = None,
    ) -> None:
        self._pending = pending
        self._views = views
        self._kind = kind
        self._timeout = timeout

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
            self._finish(timeout)
        if self._failure is not None:
            raise self._failure
        return cast(T, self._result)

    def done(self) -> bool:
        """Whether ``wait`` would return, or raise, at once.

        To ask is to wait: when the communicator's deadline has passed since the first time, the work fails.
        """
        return self._settled or self._arrived()

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
            return Work[U](_Settled(self._raw, self.token, self.source), (view,), self._kind)
        self._views = (*self._views, view)
        return cast(Work[U], self)

    def _finish(self, timeout: float | None) -> None:
        """Wait and settle, or wait a moment for the thread that does; that one alone holds ``pending``."""
        pending = self._pending
        try:
            del self._pending
        except AttributeError:
            self._await_other(timeout)
            return
        try:
            self._settle(pending, self._timeout if timeout is None else timeout)
        except EarlierError as earlier:
            self._pending = pending
            raise earlier.failure from earlier.failure.__cause__
        except Exception as failure:
            self._failure = failure
        except BaseException:  # Ctrl-C: the wait may be resumed
            self._pending = pending
            raise
        self._settled = True

    def _settle(self, pending: Any, timeout: float | None) -> None:
        self._take(pending.wait(timeout))
        self.token, self.source = pending.token, pending.source

    def _await_other(self, timeout: float | None) -> None:
        limit = math.inf if timeout is None else time.monotonic() + timeout
        while not self._settled and self._pending is None:
            if time.monotonic() >= limit:
                raise DeadlineError(f"wait: another thread still waits for this work after {timeout:g} s")
            time.sleep(_PAUSE)

    def _take(self, result: Any) -> None:
        """Keep what the call gave, in torch's terms, as this work's result."""
        for view in self._views:
            result = view(result)
        self._raw = result
        self._result = result if self._kind is None else _converted(result, self._kind)

    def _arrived(self) -> bool:
        pending = self._pending
        return pending is not None and (pending.done() or self._is_late())

    def _is_late(self) -> bool:
        """Whether the deadline has passed since somebody first asked; then the wait is made, and fails."""
        now = time.monotonic()
        self._polled = now if self._polled is None else self._polled
        if self._timeout is None or now - self._polled < self._timeout:
            return False
        self._finish(0.0)
        return self._settled


class _Settled:
    """A result that is there already."""

    def __init__(self, result: Any, token: Tensor | None = None, source: int | None = None) -> None:
        self._result = result
        self.token = token
        self.source = source

    def wait(self, timeout: float | None) -> Any:
        return self._result

    def done(self) -> bool:
        return True


class _Together:
    """Several works as one."""

    token: Tensor | None = None
    source: int | None = None

    def __init__(self, works: Sequence[Work[Any]]) -> None:
        self._works = works

    def wait(self, timeout: float | None) -> list[Any]:
        """All results; where some failed, the first failure, once every work has been waited for."""
        limit = math.inf if timeout is None else time.monotonic() + timeout
        results, failures = list[Any](), list[Exception]()
        for work in self._works:
            try:
                results.append(work.wait(None if timeout is None else max(0.0, limit - time.monotonic())))
            except Exception as failure:
                failures.append(failure if work._settled else EarlierError(failure))
        if failures:
            raise next((failure for failure in failures if not isinstance(failure, EarlierError)), failures[0])
        return results

    def done(self) -> bool:
        return all(work.done() for work in self._works)


def together(works: Sequence[Work[Any]]) -> Work[list[Any]]:
    """One work whose result is the list of these works' results."""
    return Work(_Together(works))


def settled(result: Any) -> Pending:
    """A pending whose result is there already."""
    return _Settled(result)


def _seconds(timeout: Any) -> float:
    wanted = "a number of seconds, 0 or more"
    if isinstance(timeout, bool) or not isinstance(timeout, Real):
        raise ArgumentTypeError(f"wait: timeout is {timeout!r}, should be {wanted}")
    if not float(timeout) >= 0:
        raise ArgumentValueError(f"wait: timeout is {timeout!r}, should be {wanted}")
    return float(timeout)


def _converted(result: Any, kind: Callable[[Tensor], Any]) -> Any:
    if isinstance(result, Tensor):
        return kind(result)
    if isinstance(result, list | tuple) and type(result) in (list, tuple):
        return type(result)(_converted(item, kind) for item in result)
    return result
