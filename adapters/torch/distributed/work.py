"""``Work``: what ``async_op=True``, ``isend`` and ``irecv`` return; and how a call is posted."""

from __future__ import annotations

import atexit
import contextvars
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

import torch.distributed
from torch._subclasses.fake_tensor import FakeTensor
from torch.futures import Future

import collshim.work
from collshim import world
from collshim.communicator import Communicator
from collshim.errors import ArgumentError, DeadlineError, also
from collshim.torch.distributed.arguments import refuse, seconds
from collshim.torch.distributed.membership import ProcessGroup
from collshim.torch.distributed.profiling import Event, begun

T = TypeVar("T")

_UNCHANGED = nullcontext()
_NO_TIMEOUT = timedelta(0)
_LAST_WAIT = 5.0
"""Seconds that a process which ends waits for each future that nobody waited for."""

_completing: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
_awaited: set[Work] = set()
_FORGETS = not hasattr(torch.distributed, "all_gather_single")  # torch before 2.13; seen in 2.6


class Work(torch.distributed.Work):
    """A call under way: its outputs hold their values after ``wait``. It is a ``torch.distributed.Work``.

    Works of several calls that were posted as one have all the calls' outputs.
    """

    def __init__(
        self,
        works: Sequence[collshim.work.Work[Any]],
        deadline: float | None,
        outputs: list[Any],
        event: Event | None = None,
    ) -> None:
        super().__init__()
        self._works = works
        self._deadline = deadline
        self._outputs = outputs
        self._event = event
        self._over: threading.Event | None = None
        self._future: Future[list[Any]] | None = None

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        """True, once the outputs are there; on CUDA, for what the current stream does next.

        Args:
            timeout: how long to wait; zero for the group's timeout.

        Raises:
            RuntimeError: the ranks' calls disagree, a rank did not come in time, or it failed.
        """
        limit = seconds(timeout) or self._deadline
        if self._over is not None and not self._over.wait(limit):
            raise DeadlineError(f"the call is not complete. Timed out waiting {1000 * (limit or 0):g}ms for it.")
        self._finish(limit)
        return True

    def is_completed(self) -> bool:
        """Whether ``wait`` would return, or raise, at once."""
        return all(work.done() for work in self._works)

    def is_success(self) -> bool:
        """Whether the call is complete and has not failed."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        """What a complete call failed with; None where it did not."""
        return next((error for error in (work.exception() for work in self._works) if error is not None), None)

    def result(self) -> list[Any]:
        """The call's outputs, as a list of what the caller gave for them; waits for them."""
        self.wait()
        return self._outputs

    def synchronize(self) -> None:
        """``wait``."""
        self.wait()

    def get_future(self) -> Future[list[Any]]:
        """A future of ``result()``, whose callbacks run as soon as the call is complete, with this rank's world."""
        if self._future is None:
            self._future, self._over = Future(), threading.Event()
            context, place = contextvars.copy_context(), world.peek()
            thread = threading.Thread(target=context.run, args=(self._fulfil, place), name="collshim-future")
            thread.daemon = True
            _join_at_exit()
            _completing.add(thread)
            thread.start()
        return self._future

    def source_rank(self) -> int:
        """The rank in the group that a receive was served by, once it has been waited for.

        Raises:
            RuntimeError: not the work of a receive, or not waited for yet.
        """
        source = self._works[0].source if self._works else None
        if source is None:
            text = "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call"
            refuse(RuntimeError, f"{text} that has been waited for.")
        return source

    _source_rank = source_rank

    def kept(self) -> Work:
        """This work, which C++ is given: what Python forgets cannot be waited for in older torch."""
        if _FORGETS:
            _awaited.add(self)
        return self

    def _finish(self, limit: float | None) -> None:
        _awaited.discard(self)
        event, self._event = self._event, None
        _complete(self._works, limit, event)

    def _fulfil(self, current_world: world.World | None) -> None:
        """Complete the future, on a thread of its own."""
        future, completion = self._future, self._over
        if future is None or completion is None:
            return
        try:
            self._finish(self._deadline)
        except Exception as failure:
            completion.set()
            future.set_exception(failure)  # type: ignore[arg-type]  # torch types it as the value
            return
        completion.set()
        if current_world is None:
            future.set_result(self._outputs)
        else:
            with world.use(current_world):
                future.set_result(self._outputs)


@cache
def _join_at_exit() -> None:
    """A thread that waits in C++ while the interpreter ends would abort the process; so it is waited for before."""
    atexit.register(_join)


def _join() -> None:
    for thread in list(_completing):
        thread.join(_LAST_WAIT)


Call = Callable[[Communicator], collshim.work.Work[Any]]


def posted(
    group: ProcessGroup,
    async_op: bool,
    title: str,
    call: Call,
    outputs: list[Any],
    inputs: Sequence[Any] | None = None,
    deadline: float | None = None,
) -> Work | None:
    """Post a call; its work with ``async_op``, else None once it is complete.

    ``title`` and ``inputs``, by default the outputs, are what a profiler sees; ``deadline`` is None for the group's.
    """
    limit = group.deadline if deadline is None else deadline
    if without_memory(outputs or inputs):
        return Work([], limit, outputs) if async_op else None
    event = begun(group.backend, title, outputs if inputs is None else inputs)
    works = accepted_all(group, [call], event)
    if async_op:
        return Work(works, limit, outputs, event)
    _complete(works, limit, event)
    return None


def awaited(group: ProcessGroup, title: str, call: Call) -> collshim.work.Work[Any]:
    """Post a call and wait for it; its work, with the result."""
    event = begun(group.backend, title, [])
    works = accepted_all(group, [call], event)
    _complete(works, group.deadline, event)
    return works[0]


def started(
    group: ProcessGroup,
    title: str,
    calls: Sequence[Call],
    outputs: list[Any],
    inputs: Sequence[Any] | None = None,
) -> Work:
    """Post calls; the work of all of them."""
    if without_memory(outputs or inputs):
        return Work([], group.deadline, outputs)
    event = begun(group.backend, title, outputs if inputs is None else inputs)
    return Work(accepted_all(group, calls, event), group.deadline, outputs, event)


def accepted(group: ProcessGroup, call: Callable[[Communicator], T]) -> T:
    """Post a call; what the engine refuses on this rank is a RuntimeError too, as what gloo refuses."""
    group.posted += 1
    try:
        with _outliving_inference_mode():
            return call(group.communicator)
    except ArgumentError as error:
        kind = also(type(error), RuntimeError)
        raise kind(*error.args) from error.__cause__


def without_memory(arrays: Sequence[Any] | None) -> bool:
    """Whether these are tensors on meta, or fake ones: there is nothing to move, so torch does nothing and succeeds."""
    first = arrays[0] if arrays else None
    return isinstance(first, torch.Tensor) and (first.device.type == "meta" or isinstance(first, FakeTensor))


def _outliving_inference_mode() -> AbstractContextManager[object]:
    """What the engine makes for a call is written to after ``torch.inference_mode`` may have ended."""
    if not torch.is_inference_mode_enabled():
        return _UNCHANGED
    modes = ExitStack()
    modes.enter_context(torch.inference_mode(False))
    modes.enter_context(torch.no_grad())
    return modes


def accepted_all(
    group: ProcessGroup, calls: Sequence[Call], event: Event | None = None
) -> list[collshim.work.Work[Any]]:
    """Post calls, which a profiler may watch."""
    if event is not None:
        try:
            return event.around(lambda: accepted_all(group, calls))
        except Exception:
            event.end()
            raise
    return [accepted(group, call) for call in calls]


def _complete(works: Sequence[collshim.work.Work[Any]], limit: float | None, event: Event | None) -> None:
    if event is not None:
        try:
            return event.around(lambda: _complete(works, limit, None))
        finally:
            event.end()
    try:
        (works[0] if len(works) == 1 else collshim.work.together(works)).wait(limit)
    except DeadlineError as error:
        raise type(error)(f"{error}. {_timed_out(limit)}") from error.__cause__


def _timed_out(limit: float | None) -> str:
    """The words of gloo that users match on."""
    return "Timed out waiting for the other ranks." if limit is None else f"Timed out waiting {1000 * limit:g}ms."
