"""Reports about calls that have been posted but not waited for: shared memory, changed inputs, unfinished calls."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

import collshim
from collshim.errors import ArgumentValueError, UsageWarning
from tests.engine.worlds import on_ranks, world

LARGE, SMALL = 5000, 2


def recorded(fn: Callable[..., Any], *args: Any) -> list[tuple[str, str]]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fn(*args)
    return [(each.category.__name__, str(each.message)) for each in seen]


def warnings_of(fn: Callable[..., Any], transport: str, *args: Any, kind: type[Warning] = UsageWarning) -> list[str]:
    """Return the texts of all ranks; threads share the record, processes run all in one world."""
    if transport == "threads":
        seen = recorded(on_ranks, fn, 2, transport, *args)
    else:
        seen = [each for rank in between_processes() for each in rank[PLAYS.index((fn, args))]]
    texts = [text for name, text in seen if name == kind.__name__]
    return sorted(texts, key=lambda text: text.rpartition("(rank ")[2])


@cache
def between_processes() -> list[list[list[tuple[str, str]]]]:
    """Return the warnings by rank and play."""
    return on_ranks(play, 2, "processes")


def play() -> list[list[tuple[str, str]]]:
    found = []
    for fn, args in PLAYS:
        found.append(recorded(fn, *args))
        world().barrier().wait()
    return found


def two_into_one_buffer(count: int) -> None:
    comm, tensor = world(), torch.ones(count)
    first = comm.all_reduce(torch.zeros(count), out=tensor)
    second = comm.broadcast(torch.zeros(count), out=tensor)
    first.wait()
    second.wait()


def a_result_over_what_is_read() -> None:
    comm, tensor = world(), torch.ones(LARGE)
    first = comm.all_reduce(tensor)
    second = comm.broadcast(torch.zeros(LARGE), out=tensor[:10].new_zeros(LARGE))
    third = comm.all_gather(torch.zeros(LARGE // 2), out=tensor.view(2, -1))
    for work in (first, second, third):
        work.wait()


def a_read_of_what_is_written() -> None:
    comm, tensor = world(), torch.ones(LARGE)
    first = comm.all_reduce(torch.zeros(LARGE), out=tensor)
    second = comm.all_gather(tensor[7:9])
    first.wait()
    second.wait()


def a_message_into_what_is_sent() -> None:
    comm, tensor = world(), torch.ones(LARGE)
    sent = comm.send(tensor, 1 - comm.rank)
    comm.recv(1 - comm.rank, out=tensor).wait()
    sent.wait()


def nothing_shared() -> None:
    comm, tensor = world(), torch.ones(2, LARGE)
    works: list[Any] = [comm.all_reduce(row, out=row) for row in tensor]
    works += [comm.all_reduce(torch.zeros(3)) for _ in range(2)]
    for work in works:
        work.wait()
    comm.all_reduce(tensor, out=tensor).wait()
    polled = comm.all_reduce(tensor, out=tensor)
    while not polled.done():
        pass
    comm.broadcast(tensor, out=tensor).wait()


@pytest.mark.parametrize("count", [SMALL, LARGE])
def test_two_pending_calls_into_one_buffer_are_named(checked: str, count: int) -> None:
    texts = warnings_of(two_into_one_buffer, checked, count)
    assert len(texts) == 2
    for rank, text in enumerate(texts):
        assert text.startswith(f"broadcast(shape ({count},), float32, root 0) at test_pending.py:")
        assert "its result goes to memory that all_reduce(" in text
        assert f"writes, and that call has not been waited for yet (rank {rank} of 2)" in text


def test_result_over_a_pending_input_is_named(checked: str) -> None:
    texts = warnings_of(a_result_over_what_is_read, checked)
    overlaps = [text for text in texts if text.startswith("all_gather(")]
    assert len(overlaps) == 2
    assert all("its result goes to memory that all_reduce(" in text and " reads, " in text for text in overlaps)


def test_read_of_a_pending_output_is_named(checked: str) -> None:
    texts = warnings_of(a_read_of_what_is_written, checked)
    assert len(texts) == 2
    assert all(text.startswith("all_gather(") and "its input lies in memory that all_reduce(" in text for text in texts)


def test_message_into_a_pending_send_is_named(checked: str) -> None:
    texts = [text for text in warnings_of(a_message_into_what_is_sent, checked) if text.startswith("recv(")]
    assert len(texts) == 2
    assert all("its result goes to memory that send(" in text for text in texts)


def test_independent_or_finished_calls_are_not_reported(checked: str) -> None:
    assert warnings_of(nothing_shared, checked) == []


def changed(form: str, count: int) -> None:
    comm, tensor = world(), torch.ones(count)
    comm.barrier().wait()
    if form == "send":
        work: Any = comm.send(tensor, 1 - comm.rank)
        tensor += 1
        comm.recv(1 - comm.rank, like=tensor).wait()
    else:
        work = comm.all_reduce(tensor, out=tensor if form == "in place" else None)
        tensor += 1
    work.wait()


def changed_before_the_other_comes(in_place: bool, was_changed: threading.Event) -> None:
    comm, tensor = world(), torch.ones(LARGE)
    if comm.rank == 1:
        was_changed.wait(10)
    work = comm.all_reduce(tensor, out=tensor if in_place else None)
    if comm.rank == 0:
        tensor += 1
        was_changed.set()
    work.wait()


def changed_beside() -> None:
    comm, tensor = world(), torch.ones(2, LARGE)
    work = comm.all_reduce(tensor[0], out=tensor[0])
    tensor[1] += 1
    work.wait()
    tensor += 1
    comm.all_reduce(tensor, out=tensor).wait()
    comm.all_gather(tensor[0], out=torch.empty(2, LARGE)).wait()
    comm.reduce_scatter(tensor, out=tensor[comm.rank]).wait()


FORMS = [("in place", LARGE), ("in place", SMALL), ("apart", LARGE), ("apart", SMALL), ("send", LARGE)]


@pytest.mark.parametrize(("form", "count"), FORMS)
def test_input_changed_before_the_wait_is_named(form: str, count: int) -> None:
    """The rank that comes last may have its result at once; a change after that does no harm."""
    texts = warnings_of(changed, "processes", form, count)
    assert len(texts) == 2 or (len(texts) == 1 and form != "send")
    why = r"its input was changed before the wait, so the ranks might receive the old or the new values"
    for text in texts:
        call = rf"{'send' if form == 'send' else 'all_reduce'}\(.*\) at test_pending.py:\d+"
        assert re.fullmatch(rf"{call}: {why} \(rank [01] of 2\)", text)


@pytest.mark.parametrize("in_place", [True, False])
def test_input_changed_before_peers_arrive_is_named(in_place: bool) -> None:
    (text,) = warnings_of(changed_before_the_other_comes, "threads", in_place, threading.Event())
    assert text.startswith("all_reduce(")
    assert text.endswith("(rank 0 of 2)")


def test_unrelated_or_later_change_is_ignored(checked: str) -> None:
    assert warnings_of(changed_beside, checked) == []


def never_waits() -> None:
    comm = world()
    part = comm.subgroup([0, 1])
    assert part is not None
    for _ in range(100):
        part.all_reduce(torch.ones(3))
    kept = part.broadcast(torch.ones(3))
    part.all_gather(torch.ones(3)).wait()
    comm.barrier().wait()
    for rank in range(2):
        if rank == comm.rank:
            part.close()
        comm.barrier().wait()
    kept.wait()


def test_unwaited_calls_are_named_at_close(checked: str) -> None:
    texts = warnings_of(never_waits, checked, kind=ResourceWarning)
    assert len(texts) == 4
    for rank in range(2):
        dropped, kept = (text for text in texts if f"on rank {rank} " in text)
        assert "all_reduce(shape (3,), float32, op sum) at test_pending.py:" in dropped
        assert "(100 times) was not waited for" in dropped
        assert "broadcast(" in kept


class Interruption(BaseException):
    """An exception that another thread throws."""


def waits_in_vain() -> None:
    comm = world()
    part = comm.subgroup([0, 1])
    assert part is not None
    if comm.rank == 0:
        work, here = part.all_reduce(torch.ones(3)), ctypes.c_ulong(threading.get_ident())
        thrown = here, ctypes.py_object(Interruption)
        timer = threading.Timer(0.2, ctypes.pythonapi.PyThreadState_SetAsyncExc, thrown)
        timer.start()
        with pytest.raises(Interruption):
            work.wait()
    comm.barrier().wait()
    if comm.rank == 1:
        part.all_reduce(torch.ones(3)).wait()
    comm.barrier().wait()
    part.close()


def test_call_of_an_interrupted_wait_is_not_reported(checked: str) -> None:
    assert warnings_of(waits_in_vain, checked, kind=ResourceWarning) == []


def keeps_a_subgroup() -> None:
    comm = world()
    closed, dropped, KEPT[comm.rank] = (comm.subgroup([0, 1]) for _ in range(3))
    assert closed is not None
    comm.barrier().wait()
    closed.close()
    del dropped


KEPT: dict[int, Any] = {}


def _entered_while_another_thread_waits() -> int:
    """A post of one thread notes the call before it, which another thread waits for at that moment."""
    comm = world()
    work = comm.all_reduce(torch.ones(LARGE))
    pending = comm._pending
    latest = pending.latest
    work.wait()
    pending.latest = latest  # as the post had read it before the wait
    pending.enter_latest()
    return len(pending.entries)


def test_call_waited_for_in_another_thread_is_not_reported() -> None:
    assert on_ranks(_entered_while_another_thread_waits, 2, "threads") == [0, 0]


def test_unclosed_subgroup_is_named_at_world_close() -> None:
    try:
        texts = warnings_of(keeps_a_subgroup, "threads", kind=ResourceWarning)
    finally:
        KEPT.clear()
    assert len(texts) == 2
    assert all("0-1#3, made at test_pending.py:" in text and "was never closed" in text for text in texts)


PROGRAM = """
import collshim, torch

def main():
    comm = collshim.current().communicator
    comm.all_reduce(torch.ones(3))
    comm.barrier().wait()
    keep.append(comm.subgroup([0, 1]))

keep = []
if __name__ == "__main__":
    {start}
"""


@pytest.mark.parametrize("start", ["collshim.launch(main, 2)", pytest.param("main()", marks=pytest.mark.slow)])
def test_ending_processes_name_unfinished_calls(start: str, tmp_path: Path) -> None:
    script = tmp_path / "leaves.py"
    script.write_text(PROGRAM.format(start=start))
    runner = [] if "launch" in start else ["-m", "collshim", "run", "--nproc-per-node", "2"]
    command = [sys.executable, "-W", "always::ResourceWarning", *runner, str(script)]
    variables = {**os.environ, "PYTHONWARNINGS": "always::ResourceWarning"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=200, check=True)
    assert done.stderr.count("all_reduce(shape (3,), float32, op sum) at leaves.py:6 on rank ") == 2, done.stderr
    assert done.stderr.count("made at leaves.py:8, was never closed") == 2, done.stderr


def from_two_lines() -> None:
    comm = world()
    comm.all_reduce(torch.ones(2)).wait()
    for count in (SMALL, LARGE):
        if comm.rank == 0:
            comm.all_reduce(torch.ones(count)).wait()
        else:
            comm.all_reduce(torch.ones(count)).wait()
    comm.send(torch.ones(2), 1 - comm.rank).wait()
    comm.recv(1 - comm.rank).wait()


PLAYS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    *((two_into_one_buffer, (count,)) for count in (SMALL, LARGE)),
    (a_result_over_what_is_read, ()),
    (a_read_of_what_is_written, ()),
    (a_message_into_what_is_sent, ()),
    (nothing_shared, ()),
    *((changed, (form, count)) for form, count in FORMS),
    (changed_beside, ()),
    (never_waits, ()),
    (waits_in_vain, ()),
    (from_two_lines, ()),
]
"""The calls that are run between processes."""


def with_sites(fn: Callable[..., Any], transport: str) -> list[str]:
    with collshim.options(check="sites", timeout=20):
        ranks = "threads" if transport == "threads" else "processes"
        if transport == "threads":
            seen = recorded(lambda: collshim.launch(fn, 2, ranks=ranks, timeout=200))
        else:
            found = collshim.launch(recorded, 2, ranks=ranks, args=(fn,), timeout=200)
            seen = [each for rank in found for each in rank]
    return [text for name, text in seen if name == UsageWarning.__name__]


def test_different_lines_are_named_if_requested(checked: str) -> None:
    texts = with_sites(from_two_lines, checked)
    assert len(texts) == 4
    line = from_two_lines.__code__.co_firstlineno
    lines = f"rank 0 has test_pending.py:{line + 5}, rank 1 has test_pending.py:{line + 7}"
    assert set(texts) == {f"all_reduce: the ranks call it from different lines: {lines}"}
    assert warnings_of(from_two_lines, checked) == []


def test_line_check_can_be_set_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_CHECK", "sites")
    with collshim.options() as chosen:
        assert chosen.check == "sites"
    monkeypatch.setenv("COLLSHIM_CHECK", "lines")
    with pytest.raises(ArgumentValueError, match="COLLSHIM_CHECK is 'lines', should be 0, 1 or sites"):
        collshim.launch(world, 1)


def test_invalid_check_is_refused() -> None:
    with (
        pytest.raises(ArgumentValueError, match="option check is 'all', should be True, False, 'sites' or None"),
        collshim.options(check="all"),
    ):
        pass
