"""``Work``: every collective returns one immediately, and its caller waits for it. Deferred errors.

If a call fails and no wait has raised its failure, the failure is deferred: the wait for the next call raises it. The
post of the next call does not, because ranks learn of a failure at different times, and a rank whose post raised would
skip a sequence number that its peers have used.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from numbers import Real
from typing import Any, Generic, Protocol, TypeVar, cast

from torch import Tensor

from collshim.arrays.kinds import Arrays, FromTorch, stream_follower
from collshim.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    CollshimError,
    CommunicationError,
    DeadlineError,
    is_of_handler,
    is_of_user,
)

_PAUSE = 1e-4
"""Seconds between two checks of a work that another thread waits for."""

T = TypeVar("T")
U = TypeVar("U")


class Pending(Protocol):
    """A rank's calls that were not waited for, as a work sees them."""

    def remove(self, work: Work[Arrays]) -> None:
        """Forget the work: a wait for it has ended, or nobody needs to wait for it. Both can happen to one work."""


class Delivery:
    """How the outputs of a call reach its caller. Most calls of a communicator share one.

    Attributes:
        timeout: how many seconds a wait may take by default; None for no deadline.
        kind: converts each result to the caller's kind of array, after all views; None if results are torch tensors.
        pending: lists the work until it is waited for; None if the ranks do not exchange their lines.
        earlier: the calls that had failed when this one was posted; its wait raises the first failure that was not
            raised before.
        is_plain: whether the caller receives the outputs unchanged, if no rank needs a gradient.
    """

    __slots__ = ("earlier", "is_plain", "kind", "pending", "timeout")

    def __init__(
        self,
        timeout: float | None = None,
        kind: FromTorch | None = None,
        pending: Pending | None = None,
        earlier: tuple[DeferredErrors, list[Work[Arrays]]] | None = None,
    ) -> None:
        self.timeout = timeout
        self.kind = kind
        self.pending = pending
        self.earlier = earlier
        self.is_plain = kind is None and earlier is None


_UNCHANGED = Delivery()


class Work(Generic[T]):
    """A posted collective. ``wait`` returns its result; on CUDA, ``wait`` orders streams and does not block the host.

    A program may wait for a work twice, in two threads at a time, or never; the other ranks' calls complete regardless.
    If nobody waits for a call that fails, the wait for the communicator's next call raises the failure, once that next
    call is over; a second wait for that next call returns its own result. So the ranks stay in step, even if they learn
    of a failure at different times.

    Attributes:
        token: a tensor that lets this rank join the other ranks' backward pass. It is set after ``wait`` on a rank
            whose result is None, if other ranks differentiate through the call; otherwise it is None.
        source: after the ``wait`` for a recv, the sender's rank in the group; otherwise None.

    A transport's own works derive from this class: they know when the call is over, and its outputs as torch tensors.
    The other attributes are for the engine. A transport sets ``inputs`` and ``outputs``, which it reads and writes;
    ``version``, which reveals a change of the input; and ``joint``. ``Posting`` sets ``delivery``; ``out`` if the
    caller passed an output; and otherwise ``join``, which makes the result a part of the graph if some rank needs a
    gradient. ``PendingCalls`` sets ``number`` and ``spans``, the addresses of inputs and outputs.
    """

    token: Tensor | None = None
    source: int | None = None
    inputs: Any = None
    outputs: Any = None
    spans: Any = None
    version: int | None = None
    number: int | None = None
    joint = False
    """Whether some rank needs a gradient, once the call is over; False if the ranks did not compare their calls."""

    delivery = _UNCHANGED
    out: Any = None
    join: Callable[[Work[Arrays], Any], Any] | None = None
    is_freed = False
    """Whether somebody has waited for the work, or nobody will."""

    was_over = False
    """Whether the call was over when it was posted: such a work has nothing to wait for."""

    _is_changed = False
    """Whether the wait applies views or issues warnings."""

    _call: Any = None
    _views: tuple[Callable[[Any], Any], ...] = ()
    _warnings: tuple[Callable[[], None], ...] = ()
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
        """Describe only what is known: a query would advance the call, in whichever thread a debugger uses."""
        return "failed" if self._failure is not None else "waited for" if self._settled else "not waited for"

    @property
    def call(self) -> Any:
        """The call, if a transport carries it out; else None."""
        return self._call

    @property
    def is_settled(self) -> bool:
        """Whether the work has its result, or has failed."""
        return self._settled

    @property
    def raises(self) -> Exception | None:
        """The exception of this call, once a wait has raised it; None if it did not, or raised an earlier call's."""
        return None if self._raises_once else self._failure

    @property
    def is_awaited(self) -> bool:
        """Whether a thread is in ``wait``."""
        return self._claim is None and not self._settled

    def _complete(self, timeout: float | None) -> Arrays:
        """Wait until the call is over, and return its outputs. ``timeout`` in seconds, None for no deadline."""
        raise NotImplementedError

    def _is_over(self) -> bool:
        """Return whether ``_complete`` would return, or raise, immediately."""
        raise NotImplementedError

    def _own_failure(self) -> CollshimError:
        """Return a new exception for a call that has failed, which only this rank raises."""
        raise NotImplementedError

    def _wait_again(self, timeout: float | None) -> None:
        """Look for a failure after the wait, as a call on CUDA can have; set ``_failure``."""

    def wait(self, timeout: float | None = None) -> T:
        """Wait until the call is complete, and return its result.

        Args:
            timeout: seconds, 0 or more; None for the communicator's deadline.

        Raises:
            ArgumentError: the timeout is invalid; the program may wait again.
            MismatchError, DeadlineError, PeerError, BrokenCommunicatorError: see ``collshim.errors``.
        """
        delivery = self.delivery
        limit = delivery.timeout if timeout is None else _seconds(timeout)
        if self.was_over and not self._is_changed and delivery.is_plain and delivery.pending is None:
            return self.outputs if self.out is None else self.out  # type: ignore[no-any-return]
        try:
            del self._claim  # if two threads wait, one deletes it, and the other waits for that thread
        except AttributeError:
            return self._wait_behind(timeout, limit)
        is_complete = False
        try:
            result = self._complete(limit)
            is_complete = True
            if self.joint or self._is_changed or not delivery.is_plain:
                result = self._made(result)
            self._result = result if self.out is None else self.out
        except BaseException as failure:
            if not isinstance(failure, Exception) or (is_of_handler if is_complete else is_of_user)(failure):
                self._claim = True  # it came from outside, as from a signal's handler: the wait can be resumed
                self.free()  # but need not be: the group's end does not say that it was not waited for
                raise
            self._keep(failure)
        self.join = None  # first: it might hold the communicator, whose end warns of works that are not awaited
        self._settled = True
        if delivery.pending is not None:
            self.is_freed = True
            delivery.pending.remove(self)
        if self._failure is not None:
            self._raise(self._failure)
        return self._result  # type: ignore[no-any-return]

    def _wait_behind(self, timeout: float | None, limit: float | None) -> T:
        """Wait for the thread that is in ``wait``; or look again at a work that was waited for."""
        if not self._settled:
            self._await_other(timeout)
            if not self._settled:  # that thread was interrupted
                return self.wait(timeout)
        self._wait_again(limit)
        if self._failure is not None:
            self._raise(self._failure)
        return self._result  # type: ignore[no-any-return]

    def done(self) -> bool:
        """Return whether ``wait`` would return, or raise, immediately.

        Polling counts as waiting: the work fails if the communicator's deadline has passed since ``done`` was first
        called.
        """
        is_done = self._settled or (self._claim is not None and (self._is_over() or self._is_late()))
        if is_done and not self.is_freed:
            self.free()
        return is_done

    def free(self) -> None:
        """Declare that nobody will wait, as with MPI_Request_free: the call completes, and no warning names it."""
        self.is_freed = True
        if self.delivery.pending is not None:
            self.delivery.pending.remove(self)

    def warn(self, warning: Callable[[], None]) -> None:
        """Let ``wait`` call ``warning`` once the call is over."""
        self._warnings, self._is_changed = (*self._warnings, warning), True

    def result(self) -> T:
        """Return the result; wait for it if the work is not done."""
        return self.wait()

    def exception(self) -> BaseException | None:
        """Return the exception that ``wait`` raises; None if there is none, or if the work is not done."""
        if not self.done():
            return None
        try:
            self.wait()
        except Exception as failure:
            return failure
        return None

    def then(self, view: Callable[[Arrays], U]) -> Work[U]:
        """Apply ``view`` once to the torch result, before it becomes the caller's kind of array; return this work.

        A work that was waited for stays as it is, and the returned one is new.
        """
        if self._settled:
            self.wait()
            kind = self.delivery.kind
            again = CompletedWork[U](self._result if kind is None else self._raw, self._call)
            again.token, again.source, again.delivery = self.token, self.source, Delivery(kind=kind)
            return again.then(view)
        self._views, self._is_changed = (*self._views, view), True
        return cast("Work[U]", self)

    def _made(self, result: Arrays) -> Arrays:
        """Make the caller's result from the call's outputs."""
        kind, earlier = self.delivery.kind, self.delivery.earlier
        for warning in self._warnings:
            warning()
        if self.out is not None:
            result, self.out = self.out, None
        elif self.joint and self.join is not None:
            result = self.join(self, result)
        for view in self._views:
            result = view(result)
        if earlier is not None:
            self._failure = earlier[0].taken(earlier[1])
            self._raises_once = True
        self._raw = result
        return result if kind is None else _converted(result, kind)

    def _keep(self, failure: Exception) -> None:
        """Keep the failure; an earlier one that was not raised yet is its cause."""
        self._failure, earlier = failure, self.delivery.earlier
        if earlier is not None and isinstance(failure, CommunicationError):
            failure.__cause__ = failure.__cause__ or earlier[0].taken(earlier[1])

    def _raise(self, failure: Exception) -> None:
        """Raise the work's own failure, every time; or an earlier call's, once."""
        if self._raises_once:
            self._failure = None
            raise failure from failure.__cause__
        raise failure

    def keeps(self, failure: Exception) -> bool:
        """Return whether ``failure`` is the work's own, which every wait raises; else it was an earlier call's."""
        return self._failure is failure

    def _await_other(self, timeout: float | None) -> None:
        limit = math.inf if timeout is None else time.monotonic() + timeout
        while not self._settled and self._claim is None:
            if time.monotonic() >= limit:
                raise DeadlineError(f"wait: another thread still waits for this work after {timeout:g} s")
            time.sleep(_PAUSE)

    def _is_late(self) -> bool:
        """Return whether the deadline has passed since the first ``done``; then wait, which fails."""
        now, timeout = time.monotonic(), self.delivery.timeout
        self._polled = now if self._polled is None else self._polled
        if timeout is None or now - self._polled < timeout:
            return False
        try:
            self.wait(0.0)
        except Exception:
            if not self._settled:
                raise
        return self._settled


class DeferredErrors(list[Work[Arrays]]):
    """A rank's calls that failed before they were waited for."""

    def discard(self, call: Work[Arrays]) -> None:
        """Remove a call that the rank has waited for: its failure need not be raised again."""
        with suppress(ValueError):  # another thread has raised it meanwhile
            if self:
                self.remove(call)

    def taken(self, calls: list[Work[Arrays]]) -> CollshimError | None:
        """Return the first of these failures that was not raised meanwhile; none of them will be raised again."""
        pending = [call for call in calls if call in self]
        for call in pending:
            self.discard(call)
        return pending[0]._own_failure() if pending else None


class CompletedWork(Work[T]):
    """A call that was over when it was posted."""

    was_over = True

    def __init__(self, outputs: Arrays, call: object = None) -> None:
        self._claim = True
        self.outputs = outputs
        self._call = call

    def _complete(self, timeout: float | None) -> Arrays:
        return self.outputs

    def _is_over(self) -> bool:
        return True

    def _state(self) -> str:
        return "over"


COMPLETE = CompletedWork[None](None)
"""The work of every call that had written its output by the time it was posted, as seen from the caller's stream."""


def followed(work: Work[Arrays], owner: Arrays) -> Work[Arrays]:
    """Return the work; after its wait the stream of the library of ``owner``, if it has one, follows torch's."""
    follows = None if type(owner) is Tensor else stream_follower(owner)
    if follows is None:
        return work
    if work is COMPLETE:  # which all calls share, so it takes no views
        follows(owner)
        return work
    return work.then(follows)


def is_seconds(timeout: object) -> bool:
    """Return whether this is a float that a wait accepts."""
    return type(timeout) is float and timeout >= 0


def _seconds(timeout: object) -> float:
    expected = "a number of seconds, 0 or more"
    if isinstance(timeout, bool) or not isinstance(timeout, Real):
        raise ArgumentTypeError(f"wait: timeout is {timeout!r}, should be {expected}")
    if not float(timeout) >= 0:
        raise ArgumentValueError(f"wait: timeout is {timeout!r}, should be {expected}")
    return float(timeout)


def _converted(result: Arrays, kind: FromTorch) -> Arrays:
    if isinstance(result, Tensor):
        return kind(result)
    if isinstance(result, list | tuple) and type(result) in (list, tuple):
        return type(result)(_converted(item, kind) for item in result)
    return result
