"""``Work``: waited for twice, viewed, polled, failed."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import torch

from collshim import ArgumentError, CollshimError, Communicator, DeadlineError, MismatchError, Work
from collshim.together import Together
from collshim.work import CompletedWork, DeferredErrors, Delivery
from tests.engine.worlds import CHECKED, Outcome, attempt, on_ranks, world

pytestmark = pytest.mark.threads


def _raise(failure: Exception) -> None:
    raise failure


class Started(Work[Any]):
    """A call that is over when it is told so, and counts its waits."""

    def __init__(self, outputs: Any = None, failure: BaseException | None = None, timeout: float | None = None) -> None:
        super().__init__()
        self.outputs, self.problem = outputs, failure
        self.finished = False
        self.waits: list[float | None] = []
        self.delivery = Delivery(timeout)

    def _complete(self, timeout: float | None) -> Any:
        self.waits.append(timeout)
        if self.problem is not None:
            raise self.problem
        return self.outputs

    def _is_over(self) -> bool:
        return self.finished


class Failed(Started):
    """An earlier failed call, of which no wait has learned."""

    def _own_failure(self) -> CollshimError:
        assert isinstance(self.problem, CollshimError)
        return self.problem


def after(failure: CollshimError, work: Started) -> Started:
    """Return ``work`` as if posted after a failed call."""
    earlier: list[Work[Any]] = [Failed(failure=failure)]
    work.delivery = Delivery(earlier=(DeferredErrors(earlier), earlier))
    return work


def to_numpy(work: Started) -> Started:
    work.delivery = Delivery(kind=lambda tensor: tensor.numpy())
    return work


def test_work_waits_once_and_keeps_its_result() -> None:
    started = Started(torch.ones(2))
    work: Work[Any] = started
    assert work.wait() is work.wait() is work.result() is started.outputs
    assert len(started.waits) == 1


def test_failure_is_kept_too() -> None:
    work = Started(failure=MismatchError("no"))
    caught = [attempt(work.wait).text, attempt(work.wait).text, attempt(work.result).text]
    assert caught == ["no"] * 3
    assert isinstance(work.exception(), MismatchError)
    assert work.done()


def test_deadline_is_the_communicators_or_the_waits() -> None:
    started = [Started(timeout=7.0) for _ in range(3)]
    started[0].wait()
    started[1].wait(2.0)
    started[2].wait(0.0)
    assert [known.waits for known in started] == [[7.0], [2.0], [0.0]]


def test_repr_shows_the_state_without_polling() -> None:
    work, failed = Started(), Started(failure=MismatchError("no"))
    work._is_over = lambda: pytest.fail("the transport was asked")  # type: ignore[method-assign]
    assert repr(work) == "<Work, not waited for>"
    work.wait()
    with pytest.raises(MismatchError):
        failed.wait()
    assert (repr(work), repr(failed)) == ("<Work, waited for>", "<Work, failed>")
    assert repr(CompletedWork(None, "barrier()")) == "<Work: barrier(), over>"


def test_done_asks_the_transport_until_the_wait() -> None:
    started = Started()
    work: Work[Any] = started
    assert not work.done()
    started.finished = True
    assert work.done()
    assert started.waits == []


def test_exception_does_not_wait() -> None:
    started = Started(failure=MismatchError("no"))
    work: Work[Any] = started
    assert work.exception() is None
    assert started.waits == []
    started.finished = True
    assert isinstance(work.exception(), MismatchError)


def test_views_get_a_torch_tensor_before_conversion() -> None:
    seen: list[Any] = []

    def view(result: Any) -> Any:
        seen.append(type(result).__name__)
        return [result + 1, (None, result)]

    work = to_numpy(Started(torch.ones(2))).then(view)
    got = work.wait()
    assert (work.wait() is got, seen) == (True, ["Tensor"])
    assert [type(got[0]), type(got[1][0]), type(got[1][1])] == [np.ndarray, type(None), np.ndarray]


def test_views_are_applied_in_order() -> None:
    work = Started(3).then(lambda value: value + 1).then(lambda value: value * 10)
    assert work.wait() == 40


def test_view_of_a_finished_work_keeps_its_result() -> None:
    work = Started(torch.ones(2))
    first = work.wait()
    second = work.then(lambda tensor: tensor + 1).wait()
    assert (first.tolist(), work.wait() is first, second.tolist()) == ([1, 1], True, [2, 2])


def test_view_of_a_finished_work_gets_a_torch_tensor() -> None:
    """The view sees the same, whether ``then`` comes before the wait or after it."""
    seen: list[str] = []
    work = to_numpy(Started(torch.ones(2)))
    assert type(work.wait()) is np.ndarray
    later = work.then(lambda result: (seen.append(type(result).__name__), result)[1])  # type: ignore[func-returns-value]
    assert (type(later.wait()), seen) == (np.ndarray, ["Tensor"])


def test_view_of_a_finished_work_keeps_token_and_source() -> None:
    started = Started(torch.ones(2))
    started.token, started.source = torch.zeros(()), 3
    work: Work[Any] = started
    work.wait()
    later = work.then(lambda result: result + 1)
    later.wait()
    assert (later.token is started.token, later.source) == (True, 3)


def test_view_that_raises_fails_the_work() -> None:
    work = Started(3).then(lambda value: value / 0)
    assert [attempt(work.wait).raised[0] for _ in range(2)] == ["ZeroDivisionError"] * 2


def test_view_of_a_failed_work_is_not_run() -> None:
    seen: list[Any] = []
    work = Started(failure=MismatchError("no")).then(seen.append)
    assert (attempt(work.wait).raised[0], seen) == ("MismatchError", [])


def test_interrupted_wait_can_be_resumed() -> None:
    started = Started(5, KeyboardInterrupt())
    work: Work[Any] = started
    with pytest.raises(KeyboardInterrupt):
        work.wait()
    started.problem = None
    assert work.wait() == 5


def test_earlier_failure_is_raised_once() -> None:
    work = after(MismatchError("before"), Started(5))
    assert attempt(work.wait) == Outcome(None, attempt(_raise, MismatchError("before")).raised, "before")
    assert (work.exception(), work.wait()) == (None, 5)


def test_all_grouped_works_are_waited_for() -> None:
    failing = [Started(failure=MismatchError(name)) for name in ("one", "two")]
    works = [Started(1), *failing, Started(4)]
    assert [attempt(Together(works).wait).text, *[attempt(work.wait).text for work in works]] == [
        "one",
        "",
        "one",
        "two",
        "",
    ]


def test_grouped_works_raise_an_earlier_failure_once() -> None:
    work = Together([Started(1), after(MismatchError("before"), Started(2))])
    assert attempt(work.wait).text == "before"
    assert work.wait() == [1, 2]


def test_polling_waits_until_the_deadline() -> None:
    started = Started(failure=DeadlineError("late"), timeout=0.05)
    work: Work[Any] = started
    asked = []
    while not work.done():
        asked.append(started.waits == [])
        time.sleep(0.001)
    assert (all(asked), started.waits, attempt(work.wait).text) == (True, [0.0], "late")


def test_completed_work_is_done() -> None:
    work = CompletedWork[Any](4)
    assert (work.done(), work.exception(), work.wait()) == (True, None, 4)


def _used(comm: Communicator) -> Any:  # pyright: ignore[reportUnusedFunction]
    work = comm.all_reduce(np.array([comm.rank]))
    first = work.wait()
    doubled = comm.all_reduce(np.array([comm.rank])).then(lambda total: (total, total * 2))
    return first.tolist(), work.wait() is first, [item.tolist() for item in doubled.wait()]


def _source(comm: Communicator) -> Any:  # pyright: ignore[reportUnusedFunction]
    sent = comm.send(torch.ones(1), (comm.rank + 1) % comm.size)
    got = comm.recv(None, discovers=True)
    got.wait()
    sent.wait()
    return got.source, sent.source


def test_works_of_collectives_behave_alike(transport: str) -> None:
    assert on_ranks(_on_world, 2, transport, "_used") == [([1], True, [[1], [2]])] * 2


@pytest.mark.parametrize("transport", CHECKED)
def test_recv_reports_its_sender(transport: str) -> None:
    assert on_ranks(_on_world, 3, transport, "_source") == [(2, None), (0, None), (1, None)]


def _on_world(name: str) -> Any:
    return globals()[name](world())


def test_argument_error_does_not_fail_a_work() -> None:
    def fn() -> Any:
        comm = world()
        with pytest.raises(ArgumentError):
            comm.all_reduce(np.ones(2), "mean")
        return comm.barrier().wait()

    assert on_ranks(fn, 2, "threads") == [None, None]
