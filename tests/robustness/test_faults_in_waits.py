"""Waits disturbed by a slice's end, a signal's handler or a rank that computes for the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest
import torch

import collshim
from collshim.transports.threads import carrier, exchange, group
from collshim.world import local_worlds, use
from tests.engine.worlds import on_ranks
from tests.robustness.scenarios import waits
from tests.robustness.told import SLACK

TIMEOUT = 1.5
PROCESSES = ("processes", "unchecked")
LENGTHS = {"small": 4, "shared": 2_000_000}
"""In a shared computation the waiting ranks take their part."""


@pytest.mark.parametrize("kind", ["processes", pytest.param("unchecked", marks=pytest.mark.slow)])
def test_peer_arriving_at_a_slice_end_is_no_failure(kind: str) -> None:
    found = on_ranks(waits.meets_at_the_end_of_a_slice, 2, kind, wait=30.0, within=90)
    assert found == [waits.ROUNDS] * 2


@cache
def _broken_off(kind: str, call: str) -> Any:
    return on_ranks(waits.broken_off, 2, kind, call, wait=20.0, within=60)


@pytest.mark.parametrize("when", waits.SECONDS)
@pytest.mark.parametrize("call", waits.CALLS)
@pytest.mark.parametrize("kind", PROCESSES)
def test_exception_of_a_signal_handler_reaches_the_caller(kind: str, call: str, when: str) -> None:
    assert _broken_off(kind, call)[0][when][0] == "MineError: from the handler"


@pytest.mark.parametrize("call", waits.CALLS)
@pytest.mark.parametrize("kind", PROCESSES)
def test_world_continues_after_a_signal_handler_raised(kind: str, call: str) -> None:
    assert [seen["next"] for seen in _broken_off(kind, call)] == [2, 2]


@pytest.mark.parametrize("when", waits.SECONDS)
@pytest.mark.parametrize("call", waits.CALLS)
@pytest.mark.parametrize("kind", PROCESSES)
def test_interrupted_call_can_be_waited_for_again(kind: str, call: str, when: str) -> None:
    assert _broken_off(kind, call)[0][when][1] == (None if call == "barrier" else [3.0])


@pytest.mark.parametrize("call", ["all_reduce", "barrier", "a large all_reduce"])
@pytest.mark.parametrize("kind", PROCESSES)
def test_exception_thrown_into_a_waiting_thread_is_raised(kind: str, call: str) -> None:
    found = on_ranks(waits.thrown, 2, kind, call, wait=20.0, within=60)[0]
    assert found == (("MineError",), "")


class _Fault:
    """The event in the first computation that begins: the thread that carries it out is ``thread``."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self._happens = happens
        self._first = threading.Lock()
        self.thread = ""

    def around(self, computation: Callable[..., Callable[..., Any]]) -> Callable[..., Callable[..., Any]]:
        def made(*arguments: Any) -> Callable[..., Any]:
            compute = computation(*arguments)

            def computes(*operands: Any) -> Any:
                if self._first.acquire(blocking=False):
                    self.thread = threading.current_thread().name
                    self._happens()
                return compute(*operands)

            return computes

        return made


def _patch(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]) -> _Fault:
    from collshim.transports import compute

    fault = _Fault(happens)
    patched = fault.around(compute.computation)
    for module in (exchange, carrier, compute):
        monkeypatch.setattr(module, "computation", patched)
    return fault


def _in_threads(length: int, seconds: float, meanwhile: Callable[[], None]) -> list[tuple[BaseException | None, float]]:
    """Return each of three ranks' error, and its time; ``meanwhile`` is called once two of them have ended."""
    found: list[Any] = [None] * 3
    two = threading.Semaphore(0)

    def run(rank: int, world: Any) -> None:
        begun, raised = time.monotonic(), None
        try:
            with use(world):
                world.communicator.all_reduce(torch.ones(length)).wait(seconds)
        except BaseException as error:
            raised = error
        found[rank] = raised, time.monotonic() - begun
        two.release()

    with local_worlds(3) as worlds:
        threads = [
            threading.Thread(target=run, args=(rank, world), name=f"rank {rank}", daemon=True)
            for rank, world in enumerate(worlds)
        ]
        for thread in threads:
            thread.start()
        for _ in range(2):
            two.acquire(timeout=2 * seconds + 2 * SLACK)
        meanwhile()
        for thread in threads:
            thread.join(10)
    assert None not in found, "a rank waits forever"
    return found


def _others(
    found: Sequence[tuple[BaseException | None, float]], thread: str
) -> list[tuple[BaseException | None, float]]:
    return [seen for rank, seen in enumerate(found) if f"rank {rank}" != thread]


@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_rank_ended_while_computing_is_named(
    kind: type[BaseException], length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends() -> None:
        raise kind("thrown")

    fault = _patch(monkeypatch, ends)
    found = _in_threads(length, 30.0, lambda: None)
    (own,) = [raised for rank, (raised, _) in enumerate(found) if f"rank {rank}" == fault.thread]
    assert type(own) is kind
    for raised, _ in _others(found, fault.thread):
        assert type(raised).__name__ == "CommunicationError", raised
        assert f"{kind.__name__}" in str(raised)
        assert f"on {fault.thread}, which computed for all" in str(raised)


@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
def test_rank_computing_forever_is_named_by_a_deadline(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()
    fault = _patch(monkeypatch, lambda: (goes_on.wait(60), None)[1])
    try:
        found = _in_threads(length, TIMEOUT, goes_on.set)
    finally:
        goes_on.set()
    for raised, seconds in _others(found, fault.thread):
        assert type(raised).__name__ == "DeadlineError", raised
        assert f"all arrived, but {fault.thread} has not finished its computation" in str(raised)
        assert TIMEOUT <= seconds < 2 * TIMEOUT + SLACK
    (own,) = [raised for rank, (raised, _) in enumerate(found) if f"rank {rank}" == fault.thread]
    assert type(own).__name__ == "DeadlineError", "it is told too, once it has ended"


def test_receive_from_any_rank_shows_all_locations() -> None:
    found = on_ranks(waits.awaits_any, 3, "threads", wait=0.5)
    assert "no rank sent anything: rank 1 is in no collective: it runs waits.py:" in found[0].text
    assert "; rank 2 is in no collective: it runs waits.py:" in found[0].text


def _thrown_on_rank_1(does: Callable[..., Any], *arguments: Any) -> Any:
    if threading.current_thread().name.startswith("rank 1"):
        raise KeyboardInterrupt
    return does(*arguments)


class Thrower(exchange.Exchange):
    """An exchange in which rank 1 gets an exception when it is about to compute for all."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.computing = Computing()


class Computing(list[Any]):
    def append(self, item: Any) -> None:
        _thrown_on_rank_1(super().append, item)


@pytest.mark.parametrize("call", ["all_reduce", "recv"])
def test_exception_while_posting_ends_the_group(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[str]()
    monkeypatch.setattr(group, "Exchange", Thrower)
    original = exchange.Exchange.add
    monkeypatch.setattr(exchange.Exchange, "add", lambda self, arrival: _thrown_on_rank_1(original, self, arrival))

    def calls() -> None:
        comm = collshim.current().communicator
        time.sleep(0.2 * comm.rank)
        try:
            if call == "all_reduce":
                comm.all_reduce(torch.ones(3)).wait()
            else:
                comm.recv(1 - comm.rank, like=torch.ones(3)).wait()
        except collshim.CommunicationError as error:
            told.append(str(error))

    with collshim.options(timeout=50.0), pytest.raises(collshim.RankError, match="KeyboardInterrupt"):
        collshim.launch(calls, 2)
    assert told == [f"{call}: KeyboardInterrupt:  (on rank 1, as it posted the call)"]


def test_exception_at_the_end_of_a_call_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    finish = exchange.Exchange._finish

    def throws(self: exchange.Exchange) -> None:
        finish(self)
        raise LookupError("thrown")

    with local_worlds(1) as (world,), use(world):
        monkeypatch.setattr(exchange.Exchange, "_finish", throws)
        with pytest.raises(LookupError, match="thrown"):
            world.communicator.all_gather_ragged(torch.ones(3)).wait()


def _patch_before_it_computes(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]) -> list[str]:
    """Call ``happens`` on the rank that arrived last, before it begins to compute; return its thread's name."""
    run, names = exchange.Exchange.run, list[str]()

    def fails(self: exchange.Exchange, rank: int) -> None:
        names.append(threading.current_thread().name)
        happens()
        run(self, rank)

    monkeypatch.setattr(exchange.Exchange, "run", fails)
    return names


def test_last_rank_that_never_computes_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    goes_on = threading.Event()
    names = _patch_before_it_computes(monkeypatch, lambda: (goes_on.wait(60), None)[1])
    try:
        found = _in_threads(4, TIMEOUT, goes_on.set)
    finally:
        goes_on.set()
    for raised, seconds in _others(found, names[0]):
        assert type(raised).__name__ == "DeadlineError", raised
        assert f"all arrived, but {names[0]} has not finished its computation" in str(raised)
        assert seconds < 2 * TIMEOUT + SLACK


def test_rank_ending_before_computing_is_named_early(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ends() -> None:
        raise SystemExit("thrown")

    names = _patch_before_it_computes(monkeypatch, ends)
    found = list[str]()

    def reduces() -> None:
        try:
            collshim.current().communicator.all_reduce(torch.ones(3)).wait()
        except collshim.PeerError as error:
            found.append(str(error))

    with collshim.options(timeout=50.0), pytest.raises(collshim.RankError, match="SystemExit"):
        collshim.launch(reduces, 3)
    assert len(found) == 2
    for text in found:
        computed = f"{names[0].partition(' of')[0]}, which computed for all, failed with SystemExit"
        assert f"all arrived, but {computed}" in text
