"""``Work``: what every collective returns at once, and what its caller waits for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar, cast

from torch import Tensor

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


class Work(Generic[T]):
    """A posted collective. ``wait`` returns its result; on CUDA that orders streams and does not block the host.

    A work may be waited for twice, or never: its peers are served all the same, and a failure that nobody waited for
    is raised by the communicator's next call.

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

    def __init__(
        self,
        pending: Pending,
        views: tuple[Callable[[Any], Any], ...] = (),
        kind: Callable[[Tensor], Any] | None = None,
        timeout: float | None = None,
    ) -> None:
        self._pending: Pending | None = pending
        self._views = views
        self._kind = kind
        self._timeout = timeout

    def wait(self, timeout: float | None = None) -> T:
        """The result, once it is there.

        Args:
            timeout: seconds; None for the communicator's deadline.

        Raises:
            MismatchError, DeadlineError, PeerError, BrokenCommunicatorError: see ``collshim.errors``.
        """
        if not self._settled:
            self._finish(timeout)
        if self._failure is not None:
            raise self._failure
        return cast(T, self._result)

    def done(self) -> bool:
        """Whether ``wait`` would return, or raise, at once."""
        return self._settled or self._arrived()

    def result(self) -> T:
        """The result of a work that is done; waits where it is not."""
        return self.wait()

    def exception(self) -> BaseException | None:
        """What a finished work raised, or None."""
        if not self._settled and self._arrived():
            self._finish(None)
        return self._failure

    def then(self, view: Callable[[Any], U]) -> Work[U]:
        """This work with ``view`` applied to its torch result, once; the caller's array kind is made after it."""
        if self._settled:
            self.wait()
            settled = Work[U](_Settled(self._raw), (view,), self._kind)
            settled.token = self.token
            return settled
        self._views = (*self._views, view)
        return cast(Work[U], self)

    def _finish(self, timeout: float | None) -> None:
        pending = self._pending
        if pending is None:  # another thread has waited meanwhile
            return
        try:
            self._take(pending.wait(self._timeout if timeout is None else timeout))
            self.token, self.source = pending.token, pending.source
        except Exception as failure:
            self._failure = failure
        self._settled, self._pending = True, None

    def _take(self, result: Any) -> None:
        """Keep what the call gave, in torch's terms, as this work's result."""
        for view in self._views:
            result = view(result)
        self._raw = result
        self._result = result if self._kind is None else _converted(result, self._kind)

    def _arrived(self) -> bool:
        return self._pending is None or self._pending.done()


class _Settled:
    """A result that is there already."""

    token: Tensor | None = None
    source: int | None = None

    def __init__(self, result: Any) -> None:
        self._result = result

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
        limit = None if timeout is None else time.monotonic() + timeout
        return [work.wait(None if limit is None else max(0.0, limit - time.monotonic())) for work in self._works]

    def done(self) -> bool:
        return all(work.done() for work in self._works)


def together(works: Sequence[Work[Any]]) -> Work[list[Any]]:
    """One work whose result is the list of these works' results."""
    return Work(_Together(works))


def settled(result: Any) -> Pending:
    """A pending whose result is there already."""
    return _Settled(result)


def _converted(result: Any, kind: Callable[[Tensor], Any]) -> Any:
    if isinstance(result, Tensor):
        return kind(result)
    if isinstance(result, list | tuple) and type(result) in (list, tuple):
        return type(result)(_converted(item, kind) for item in result)
    return result
