"""One ``MirroredStrategy.run``: a thread for each replica, and their merge calls.

The caller's thread waits meanwhile, and runs merge functions. Replicas run one at a time, in order, each until it waits
for the others. Each is in a separate world, made for this run, so that a replica that waits for one that has returned
or failed is informed at once.

Source: TensorFlow 2.21, whose replicas run one after the other up to each merge call, run on two CPUs.
"""

from __future__ import annotations

import contextvars
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch

from collshim import world
from collshim.communicator import Communicator
from collshim.errors import CollshimError, DeadlineError, MismatchError, PeerError, described
from collshim.tensorflow.distribute import stack
from collshim.tensorflow.distribute.agreement import Agreement
from collshim.tensorflow.distribute.devices import cuda_index
from collshim.tensorflow.distribute.replica_context import ReplicaContext, poll
from collshim.tensorflow.distribute.strategy import Strategy
from collshim.tensorflow.distribute.values import regroup, select
from collshim.tensorflow.errors import raise_as_tensorflow
from collshim.transports.threads.turns import Turns

_UNEQUAL_CALLS = "Some replicas made a different number of replica_context().merge_call() calls."


class _Calling(NamedTuple):
    """A function and its arguments."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class MirroredReplicaContext(ReplicaContext):
    """A replica in one of several threads."""

    def __init__(self, strategy: Strategy, replica_id_in_sync_group: int, threads: ReplicaThreads) -> None:
        super().__init__(strategy, replica_id_in_sync_group)
        self._threads = threads
        self._counts: Counter[str] = Counter()

    def _made(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a variable: the first replica makes it, and the others, which run later, get it in their turn.

        Variables correspond if they have the same name, without its numbers, and are made in the same order.

        Raises:
            RuntimeError: the first replica has not made such a variable.
        """
        key = re.sub(r"_\d+(?=/|$)", "", name)
        found, place = self._threads.variables.setdefault(key, []), self._counts[key]
        self._counts[key] += 1
        if self._replica_id == 0:
            found.append(make())
        if place >= len(found):
            raise stack.ContextError(
                f"replica {self._replica_id} makes the variable number {place + 1} with the name {name!r}, replica 0 "
                f"has made {len(found)} of them so far: should make the same variables in each replica"
            )
        return found[place]

    def _communicator(self) -> Communicator | None:
        world_of_replica: world.World = self._threads.worlds[self._replica_id]
        return world_of_replica.communicator

    def _agree(self, collective: str, leaves: int, axis: int | None = None) -> None:
        self._threads.agreement.agree(collective, self._replica_id, leaves, axis)

    def _await(self, is_over: Callable[[], bool], seconds: float) -> None:
        self._threads.wait(self._replica_id, is_over, seconds)

    def _merged(self, merge_fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return self._threads.merge(self._replica_id, _Calling(merge_fn, args, kwargs))
        except CollshimError as error:
            raise_as_tensorflow(error)


class ReplicaThreads:
    """The replicas of one run.

    Attributes:
        worlds: each replica's world.
        agreement: the values that must be the same in their collectives.
        variables: those that the first replica has made, by name, which the others use.
    """

    def __init__(self, strategy: Strategy, devices: Sequence[str]) -> None:
        self._turns = Turns(len(devices))
        self.worlds = world.local_worlds(len(devices), self._turns)
        self.agreement = Agreement(len(devices))
        self.variables: dict[str, list[Any]] = {}
        self._strategy = strategy
        self._devices = devices
        self._changed = threading.Condition()
        self._merging: dict[int, _Calling] = {}
        self._merged: dict[int, Any] = {}
        self._running = set(range(len(devices)))
        self._results: dict[int, Any] = {}
        self._failures: list[BaseException] = []

    def run(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return the results of ``fn``, in replica order; raise the first failure after all replicas have ended."""
        with self.worlds, self._ending_replicas():
            threads = [self._thread(replica, fn, args, kwargs) for replica in range(len(self._devices))]
            for thread in threads:
                thread.start()
            self._serve()
            for thread in threads:
                thread.join()
        if self._failures:
            raise _as_strategy_says(self._failures[0])
        return [self._results[replica] for replica in range(len(self._devices))]

    def merge(self, replica: int, call: _Calling) -> Any:
        """Wait until every replica has made a merge call; return this one's part of the merge function's result."""
        timeout = self.worlds[replica].communicator.timeout
        with self._changed:
            self._merging[replica] = call
            self._changed.notify_all()
        with self._turns.paused(replica, lambda: self._is_answered(replica)), self._changed:
            if not self._changed.wait_for(lambda: self._is_answered(replica), timeout):
                self._turns.end()
        with self._changed:
            if replica in self._merged and not self._failures:
                return self._merged.pop(replica)
            failure = self._unanswered(timeout)
            self._merging.pop(replica, None)
            raise failure

    def wait(self, replica: int, is_over: Callable[[], bool], seconds: float) -> None:
        """Return when ``is_over()``, a replica has failed, or after some seconds; others run meanwhile."""

        def can_go_on() -> bool:
            return is_over() or bool(self._failures)

        with self._turns.paused(replica, can_go_on):
            poll(can_go_on, seconds)

    def _is_answered(self, replica: int) -> bool:
        return replica in self._merged or bool(self._failures)

    def _thread(
        self, replica: int, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> threading.Thread:
        """Return a thread for one replica, in a copy of the caller's context variables."""
        call = _Calling(fn, select(replica, args), select(replica, kwargs))
        settings = _CallerSettings(self._devices[replica])
        body = partial(contextvars.copy_context().run, self._replica, replica, call, settings)
        return threading.Thread(target=body, name=f"replica {replica}", daemon=True)

    def _replica(self, replica: int, call: _Calling, settings: _CallerSettings) -> None:
        """Run a replica, in its thread."""
        context_of_replica = MirroredReplicaContext(self._strategy, replica, self)
        try:
            self._turns.take(replica)
            if self._failures:
                self._ended(replica, "has not begun")
                return
            with (
                settings.applied(),
                world.use(self.worlds[replica]),
                stack.entered(self._strategy, context_of_replica),
            ):
                result = call.function(*call.args, **call.kwargs)
            self._ended(replica, "has returned", result=result)
        except BaseException as error:
            self._ended(replica, f"raised {described(error)}", failure=error)

    def _ended(self, replica: int, reason: str, result: Any = None, failure: BaseException | None = None) -> None:
        with self._changed:
            self._results[replica] = result
            if failure is not None:
                self._failures.append(failure)
            self._running.discard(replica)
            self._changed.notify_all()
        self.worlds.leave(replica, reason)

    @contextmanager
    def _ending_replicas(self) -> Iterator[None]:
        """End the replicas that wait in a merge call if the caller is interrupted; the world ends the others."""
        try:
            yield
        except BaseException as error:
            with self._changed:
                self._failures.append(error)
                self._changed.notify_all()
            self._turns.end()
            raise

    def _serve(self) -> None:
        """Run merge functions until all replicas have ended."""
        with self._changed:
            while self._running:
                self._changed.wait_for(self._needs_an_answer)
                if self._running:
                    self._answer()
                    self._changed.notify_all()

    def _needs_an_answer(self) -> bool:
        return not self._running or (not self._failures and self._running <= self._merging.keys())

    def _answer(self) -> None:
        """Run a merge function while every running replica waits in a merge call; none takes the lock meanwhile."""
        if len(self._merging) < len(self._devices):
            self._failures.append(MismatchError(_UNEQUAL_CALLS))
            return
        calls = [self._merging.pop(replica) for replica in range(len(self._devices))]
        try:
            with stack.entered(self._strategy, None):
                args = regroup([call.args for call in calls])
                result = calls[0].function(self._strategy, *args, **regroup([call.kwargs for call in calls]))
            self._merged = {replica: select(replica, result) for replica in range(len(calls))}
        except BaseException as error:
            self._failures.append(error)

    def _unanswered(self, timeout: float) -> Exception:
        """Return the error for a merge call without a result."""
        if self._failures:
            return PeerError(f"merge_call: another replica or the merge function failed: {self._failures[0]!r}")
        missing_replicas = sorted(self._running - self._merging.keys())
        return DeadlineError(f"merge_call: replicas {missing_replicas} did not arrive within {timeout:g} s")


def _as_strategy_says(failure: BaseException) -> BaseException:
    """Turn the error of a replica that waited for one that has returned into a mismatch of their numbers of calls."""
    if not isinstance(failure, PeerError):
        return failure
    mismatch = MismatchError(f"{_UNEQUAL_CALLS} {failure}")
    mismatch.__cause__ = failure
    return mismatch


class _CallerSettings:
    """torch's settings per thread, which a replica inherits from the thread that called ``run``."""

    def __init__(self, device: str) -> None:
        self._cuda = cuda_index(device)
        self._grad = torch.is_grad_enabled()
        self._inference = torch.is_inference_mode_enabled()

    def applied(self) -> ExitStack:
        """Apply, in the replica's thread, the caller's modes, and the CUDA device of the replica's name, if any."""
        stack = ExitStack()
        stack.enter_context(torch.inference_mode(self._inference))
        stack.enter_context(torch.set_grad_enabled(self._grad))
        # Backward on torch's one thread per GPU would run one replica's collective at a time.
        stack.enter_context(torch.autograd.set_multithreading_enabled(False))
        if self._cuda is not None:
            stack.enter_context(torch.cuda.device(self._cuda))
        return stack
