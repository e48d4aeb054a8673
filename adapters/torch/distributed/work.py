"""``Work``: the result of ``async_op=True``, ``isend`` and ``irecv``."""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext, suppress
from datetime import timedelta
from typing import Any, TypeVar

import torch.distributed
from torch import Tensor
from torch.futures import Future
from torch.utils._pytree import tree_leaves

import collshim.work
from collshim import world
from collshim.adapting.refusing import refuse
from collshim.calls.pending import tell_change
from collshim.errors import DeadlineError
from collshim.torch.distributed.arguments import seconds
from collshim.torch.distributed.completions import Completions
from collshim.torch.distributed.order import Order
from collshim.torch.distributed.profiling import Event
from collshim.torch_release import DROPS_PYTHON_WORKS
from collshim.work import COMPLETE

T = TypeVar("T")

_NO_TIMEOUT = timedelta(0)

_unwaited: set[Work] = set()
_settled: deque[Work] = deque(maxlen=64)
"""The last works that a later call settled before C++ waited for them; these are kept alive too."""


class Work(torch.distributed.Work):
    """A call in progress, whose outputs have their values after ``wait``. It is a ``torch.distributed.Work``.

    The work of several calls that were posted as one has the outputs of all these calls. A collective's work is
    complete only after the works of all collectives that this rank posted before it on the same group: see ``order``.

    Attributes:
        number: the collective's position in the order of its group.
    """

    number = 0

    _order: Order | None = None
    _is_held = False
    _event: Event | None = None
    _over: threading.Event | None = None
    _future: Future[list[Any]] | None = None
    _failure: Exception | None = None
    _size: int | None = None
    """The number of ranks whose parts the single output has, if the parts are the results; they are cut on demand."""

    def __init__(
        self,
        work: collshim.work.Work[Any],
        deadline: float | None,
        outputs: list[Any],
        event: Event | None = None,
        size: int | None = None,
        order: Order | None = None,
    ) -> None:
        """Make the work of a call; for a collective, ``order`` is the order of its group."""
        super().__init__()
        self._work = work
        self._deadline = deadline
        self._outputs = outputs
        if size is not None:
            self._size = size
        self._own = None if work.was_over or getattr(work, "caller", None) is None else _own_of(work, outputs)
        if event is not None:
            self._event = event
        if order is not None:
            order.add(self)
            self._order = order

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        """Wait for the outputs; the result is True. On CUDA, the next operations of the current stream see them.

        Args:
            timeout: how long to wait; zero means the group's timeout.

        Raises:
            RuntimeError: the ranks' calls disagree, a rank did not arrive in time, or it failed.
        """
        if self._is_held:
            with suppress(ValueError):
                _settled.remove(self)
        limit = self._deadline if timeout is _NO_TIMEOUT else seconds(timeout) or self._deadline
        earlier = None if self._order is None else self._order.settle_before(self.number, limit)
        try:
            self._wait(limit)
        finally:
            self._leave_order()
        if earlier is not None:
            raise earlier
        return True

    def _wait(self, limit: float | None) -> None:
        if self._over is None and self._event is None and self._own is None and not self._is_held:
            _complete(self._work, limit)
        elif self._over is not None and not self._over.wait(limit):
            raise DeadlineError(f"the call is not complete. Timed out waiting {1000 * (limit or 0):g}ms for it.")
        else:
            self._finish(limit)

    def settle(self, limit: float | None) -> Exception | None:
        """Wait, and return the call's failure instead of raising it: see ``Ordered``.

        The thread that completes the future must not call this, because it may itself settle a later call.
        """
        if self._is_held:
            _settled.append(self)
        try:
            self._finish(self._deadline if limit is None else limit)
        except Exception as failure:
            if not self._work.is_settled:  # raised from outside, for example by a signal handler
                raise
            return failure
        return None

    def _leave_order(self) -> None:
        """Leave the group's order, if the call is over."""
        order = self._order
        if order is not None and self._work.is_settled:
            order.drop(self)
            self._order = None

    def is_completed(self) -> bool:
        """Return whether ``wait`` would return, or raise, at once."""
        return self._work.done()

    def is_success(self) -> bool:
        """Return whether the call is complete and has not failed."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        """Return the error of a complete call that failed, and None otherwise."""
        return self._work.exception()

    def result(self) -> list[Any]:
        """Wait, and return the call's outputs: a list of the arrays that the caller passed for them."""
        self.wait()
        return self._results()

    def synchronize(self) -> None:
        """Call ``wait``."""
        self.wait()

    def get_future(self) -> Future[list[Any]]:
        """Return a future of ``result()``, whose callbacks run as soon as the call is complete, with this rank's world.

        If the call fails, the future fails too, in C++ and in Python: waiting for it raises a RuntimeError with the
        call's error as text. On CUDA, a call may fail after its future is complete; then this returns a new future.
        """
        if self._future is None or (self._future.done() and self._failure is None and not self.is_success()):
            # A future fails for C++ only if a callback that makes its value raises: ``set_exception`` makes the
            # exception the value, and DDP's reducer would take that for tensors.
            completion: Future[list[Any]] = Future(devices=_devices(self._outputs))
            self._future, self._over = completion.then(lambda _: self._outcome()), threading.Event()
            job, order = _Fulfilment(self, completion), self._order
            if self.is_completed() and (order is None or order.is_first(self)):
                job.wait()
                job.fulfil()
            else:
                completions = Completions() if order is None else order.completions
                completions.add(job)
        return self._future

    def source_rank(self) -> int:
        """Return the rank in the group that sent the message of a receive, after a wait for it.

        Raises:
            RuntimeError: the work is not a receive's, or has not been waited for.
        """
        source = self._work.source
        if source is None:
            text = "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call"
            refuse(RuntimeError, f"{text} that has been waited for.")
        return source

    _source_rank = source_rank

    def keep(self) -> Work:
        """Return this work for C++; with an older torch, also keep it alive, so that it can be waited for."""
        if DROPS_PYTHON_WORKS:
            self._hold()
        return self

    def boxed(self) -> Any:
        """Return this work as an object of TorchScript, which keeps it alive."""
        for_script: Any = torch.distributed.ProcessGroup.barrier(_Returning(self), torch.distributed.BarrierOptions())
        if for_script is self:  # with an older torch
            self._hold()
            return super().boxed()
        return for_script.boxed()

    def _hold(self) -> None:
        self._is_held = True
        _unwaited.add(self)

    def _results(self) -> list[Any]:
        if self._size is not None:
            self._outputs, self._size = parts_of(self._outputs[0], self._size), None
        return self._outputs

    def _finish(self, limit: float | None) -> None:
        if self._is_held:
            _unwaited.discard(self)
        event, self._event = self._event, None
        own, self._own = self._own, None
        if own is not None and own[0]._version != own[1]:
            tell_change(self._work)
        complete(self._work, limit, event)

    def _outcome(self) -> list[Any]:
        """Return the results of a complete call, or raise its error."""
        if self._failure is not None:
            raise self._failure.with_traceback(None)  # C++ puts the frames into its text
        return self._results()

    def complete_for_future(self) -> None:
        """Wait for the call, whose failure the future will raise."""
        if self._is_held:
            _settled.append(self)
        order, earlier = self._order, None
        if order is not None:
            earlier = order.settle_before(self.number, self._deadline)
        try:
            self._finish(self._deadline)
            if earlier is not None:
                raise earlier
        except Exception as failure:
            self._failure = failure
        self._leave_order()
        if self._over is not None:
            self._over.set()

    def fulfil(self, completion: Future[list[Any]]) -> None:
        """Complete the future of ``completion``; the streams that wait for the future also wait for its tensors."""
        completion.set_result([] if self._failure is not None else self._outputs)


class _Fulfilment:
    """A call whose future is to be completed, in the context and with the world of the call: see ``Job``."""

    def __init__(self, work: Work, completion: Future[list[Any]]) -> None:
        self._work = work
        self._completion = completion
        self._context = contextvars.copy_context()
        self._world = world.peek()

    def wait(self) -> None:
        """See ``Job``."""
        self._run(self._work.complete_for_future)

    def fulfil(self) -> None:
        """See ``Job``."""
        self._run(lambda: self._work.fulfil(self._completion))

    def _run(self, step: Callable[[], None]) -> None:
        self._context.run(self._run_in_world, step)

    def _run_in_world(self, step: Callable[[], None]) -> None:
        with nullcontext() if self._world is None else world.use(self._world):
            step()


_TorchsGroup: Any = torch.distributed.ProcessGroup  # its stubs have overloads that a method in Python cannot follow


class _Returning(_TorchsGroup):  # type: ignore[misc]
    """A group whose barrier returns a work: the object that a Python method returns to C++ keeps the work alive."""

    def __init__(self, work: Work) -> None:
        super().__init__(0, 1)
        self._work = work

    def barrier(self, *arguments: Any) -> Any:
        return self._work


def parts_of(output: Any, size: int) -> list[Any]:
    """Return the results of an ``all_gather_single``: for a tensor, one view for each of ``size`` ranks."""
    divisible = isinstance(output, Tensor) and output.dim() > 0
    return [*output.detach().tensor_split(size)] if divisible else [output]


def _own_of(work: collshim.work.Work[Any], outputs: list[Any]) -> tuple[Tensor, int] | None:
    """Return the caller's tensor and its version, which shows a change, for an in-place call that ranks compare.

    The engine has only the tensor's memory, whose changes have no version.
    """
    if type(work.inputs) is not Tensor or not outputs:
        return None
    own: Tensor = outputs[0]
    if type(own) is not Tensor or own.is_inference() or own.data_ptr() != work.inputs.data_ptr():
        return None
    return own, own._version


def _devices(outputs: Any) -> list[int | str | torch.device]:
    """Return the GPUs of nested outputs, so that streams that wait for a future on these GPUs wait for the outputs."""
    leaves = tree_leaves(outputs)
    found = {leaf.device for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.is_cuda}
    return [*found]


class _Done(Work):
    """The work of all calls that are over when they are posted, for callers that only wait for it."""

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        """Return True."""
        return True


DONE = _Done(COMPLETE, None, [])
"""The work of a call whose caller waits at once; it has no outputs, and lives as long as the process."""


def complete(
    work: collshim.work.Work[T], limit: float | None, event: Event | None = None, order: Order | None = None
) -> T:
    """Wait for a call, inside its profiler event if there is one, and return its result.

    ``order`` is the group's order if the call is a collective: earlier calls are waited for first.
    """
    failure = order.settle(limit) if order else None
    result = _complete(work, limit) if event is None else _complete_watched(work, limit, event)
    if failure is not None:
        raise failure
    return result


def _complete(work: collshim.work.Work[T], limit: float | None) -> T:
    try:
        return work.wait(limit)
    except DeadlineError as error:
        raise timed_out(error, limit) from error.__cause__


def _complete_watched(work: collshim.work.Work[T], limit: float | None, event: Event) -> T:
    try:
        return event.around(lambda: _complete(work, limit))
    finally:
        event.end()


def timed_out(error: DeadlineError, limit: float | None) -> DeadlineError:
    """Return the error with gloo's words, which programs look for."""
    what = "for the other ranks" if limit is None else f"{1000 * limit:g}ms"
    return type(error)(f"{error}. Timed out waiting {what}.")
