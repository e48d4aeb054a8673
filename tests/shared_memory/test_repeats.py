"""Calls that the compiled core repeats whole: for which it does, and that nothing else changes."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

import collshim
import collshim.torch.distributed as dist
from collshim.errors import DeadlineError
from collshim.observers import Observer
from collshim.torch.distributed.distributed_c10d import _get_default_group
from tests.engine.call_counts import count
from tests.engine.worlds import attempt, world
from tests.shared_memory.repeats import FEW, NEEDS_CORE, add, is_whole, repeated, run

pytestmark = [pytest.mark.processes, NEEDS_CORE]


def reductions() -> tuple[list[bool], list[list[Any]]]:
    rank = dist.get_rank()
    sums = [torch.tensor([rank], dtype=dtype) for dtype in (torch.bfloat16, torch.bool, torch.uint8, torch.complex64)]
    found = [repeated(partial(add, x)) for x in sums]
    greatest = torch.tensor([rank + 1.0, 3.0 - rank])
    found.append(repeated(lambda: dist.all_reduce(greatest, op=dist.ReduceOp.MAX)))
    return found, [x.tolist() for x in (*sums[1:2], greatest)]


def test_reductions_are_repeated_whole_unless_the_core_lacks_the_dtype() -> None:
    for found, values in run(reductions):
        assert found == [True, True, True, False, True]
        assert values == [[True], [2.0, 3.0]]


def other_arrays() -> list[tuple[bool, Any]]:
    x = torch.ones(4)
    assert repeated(lambda: dist.all_reduce(x))
    strided, double = torch.ones(8)[::2], torch.ones(4, dtype=torch.float64)
    with torch.inference_mode():
        inferred = torch.ones(4)
    arrays: list[Any] = [torch.ones(4), torch.ones(5), strided, double, inferred, torch.ones(4).numpy()]
    return [(is_whole(partial(add, x)), x.tolist()) for x in arrays]


def test_only_like_tensors_are_repeated_whole() -> None:
    fours = [4.0] * 4
    for rank in run(other_arrays):
        assert rank == [(True, fours), (False, [4.0] * 5), *[(False, fours)] * 4]


def shapes_by_turns() -> list[bool]:
    tensors = [torch.ones(count) for count in range(1, 6)]
    for _ in range(4):
        for x in tensors:
            dist.all_reduce(x)
    return [is_whole(partial(add, x)) for x in tensors]


def test_several_shapes_are_repeated_by_turns() -> None:
    assert run(shapes_by_turns) == [[True] * 5] * 2


def shares_memory() -> list[str]:
    """Return the errors of calls whose tensors overlap, before and after such calls were repeated."""
    memory, size = torch.zeros(8), dist.get_world_size()

    def overlapping() -> str:
        return attempt(lambda: dist.all_to_all([memory[0:2], memory[1:3]], [memory[4:6], memory[6:8]])).text

    before = overlapping()
    assert repeated(lambda: dist.all_to_all([memory[0:2], memory[2:4]], [memory[4:6], memory[6:8]]))
    assert size == 2
    return [before, overlapping()]


def test_overlapping_outputs_are_refused_as_before() -> None:
    for before, after in run(shares_memory):
        assert before == after != ""


def without_memory() -> tuple[bool, str]:
    x = torch.ones(4)
    assert repeated(lambda: dist.all_reduce(x))
    x.untyped_storage().resize_(0)
    outcome = attempt(lambda: dist.all_reduce(x))
    return outcome.raised != (), outcome.text


def test_freed_tensor_is_refused() -> None:
    for is_refused, text in run(without_memory):
        assert is_refused, text


def at_two_lines() -> str:
    x = torch.ones(4)
    for _ in range(6):
        dist.all_reduce(x)
        dist.all_reduce(x)
    return attempt(lambda: dist.all_reduce(x) if dist.get_rank() else dist.reduce(x, 0)).text


def test_error_names_the_line_of_each_rank() -> None:
    first = at_two_lines.__code__.co_firstlineno
    for text in run(at_two_lines):
        assert text.count(f"test_repeats.py:{first + 5}") == 2, text


def lines_by_turns() -> int:
    x = torch.ones(4)

    def step() -> None:
        dist.all_reduce(x)
        dist.barrier()
        dist.all_reduce(x)
        dist.barrier()

    for _ in range(4):
        step()
    return count(step).calls


def test_calls_from_lines_by_turns_are_repeated() -> None:
    assert max(run(lines_by_turns)) <= 4 * FEW


def deeper(x: Tensor, depth: int) -> None:
    if depth:
        deeper(x, depth - 1)
    else:
        dist.all_reduce(x)


def from_functions() -> tuple[bool, bool, str]:
    """Return whether calls are repeated at two depths of a recursion, and the error of a call at another depth."""
    x = torch.ones(4)
    shallow, deep = repeated(partial(deeper, x, 0)), repeated(partial(deeper, x, 7))
    return shallow, deep, attempt(partial(deeper, torch.ones(4 + dist.get_rank()), 2)).text


def test_caller_is_found_at_any_depth() -> None:
    line = deeper.__code__.co_firstlineno + 4
    for shallow, deep, text in run(from_functions):
        assert shallow
        assert deep
        assert text.count(f"test_repeats.py:{line}") == 2, text


def after_a_pause() -> list[float]:
    x = torch.ones(2)
    for number in range(8):
        if number == 6:
            time.sleep(0.3 + 0.1 * dist.get_rank())
        dist.all_reduce(x)
    return x.tolist()


def test_call_after_a_pause_is_right() -> None:
    assert run(after_a_pause) == [[256.0, 256.0]] * 2


def awaits_a_late_rank() -> tuple[bool, float]:
    x = torch.ones(2)
    assert repeated(lambda: dist.all_reduce(x))
    if dist.get_rank() == 1:
        time.sleep(0.6)
    dist.all_reduce(x)
    return is_whole(lambda: dist.all_reduce(x)), x[0].item()


def test_wait_for_a_late_rank_goes_on_in_python() -> None:
    assert [value for _, value in run(awaits_a_late_rank)] == [512.0, 512.0]


def misses_a_rank() -> tuple[bool, float]:
    x, comm = torch.ones(2), world()
    assert repeated(lambda: dist.all_reduce(x))
    comm.timeout = _get_default_group().deadline = 0.1
    if dist.get_rank() == 1:
        time.sleep(1.5)
        return True, 0.0
    began = time.monotonic()
    with pytest.raises(DeadlineError):
        dist.all_reduce(x)
    return True, time.monotonic() - began


def test_new_timeout_holds_for_repeated_calls() -> None:
    (_, seconds), _ = run(misses_a_rank)
    assert 0.05 < seconds < 1.4


def watched() -> tuple[list[bool], str, int]:
    """Return which calls are repeated, the error of a search for NaN, and how many calls an observer sees."""
    x, comm, seen = torch.ones(2), world(), list[Any]()

    class Counts(Observer):
        def before(self, plan: Any, inputs: Any, outputs: Any, caller: Any) -> Any:
            return plan

        def after(self, work: Any, plan: Any, caller: Any, group: str) -> None:
            seen.append(plan)

    whole = [repeated(lambda: dist.all_reduce(x))]
    with collshim.options(find_nan=True):
        text = attempt(lambda: dist.all_reduce(torch.tensor([1.0, float("nan")]))).text
    comm.observe(Counts())
    whole.append(is_whole(lambda: dist.all_reduce(x)))
    dist.all_reduce(x)
    return whole, text, len(seen)


def test_observers_see_repeated_calls() -> None:
    for whole, text, seen in run(watched):
        assert whole == [True, False]
        assert "NaN" in text
        assert seen == 3


def versions() -> tuple[int, int, int]:
    """Return by how much a call increases the version of its output: uncounted as by gloo, counted, and of an input."""
    x, out = torch.ones(2), torch.empty(2 * dist.get_world_size())
    assert repeated(lambda: dist.all_reduce(x))
    assert repeated(lambda: dist.all_gather_single(out, x))
    before = x._version, out._version
    dist.all_reduce(x)
    uncounted = x._version - before[0]
    dist.all_gather_single(out, x)
    return uncounted, out._version - before[1], x._version - before[0]


def test_autograd_counts_the_writes_that_it_counted_before() -> None:
    assert run(versions) == [(0, 1, 0)] * 2


def beside_a_thread() -> list[float]:
    """Make calls in two groups from two threads, and calls with and without a work in one group."""
    x, y, other = torch.ones(2), torch.ones(2), dist.new_group()

    def calls() -> None:
        for _ in range(200):
            dist.all_reduce(y, group=other)
            y.div_(2)

    thread = collshim.Thread(target=calls) if hasattr(collshim, "Thread") else threading.Thread(target=calls)
    thread.start()
    for number in range(200):
        work = dist.all_reduce(x, async_op=True) if number % 3 == 0 else None
        if work is not None:
            work.wait()
        else:
            dist.all_reduce(x)
        x.div_(2)
    thread.join()
    return [x[0].item(), y[0].item()]


def test_threads_of_a_rank_do_not_disturb_each_other() -> None:
    assert run(beside_a_thread) == [[1.0, 1.0]] * 2


def drops_a_group() -> bool:
    group: Any = dist.new_group()
    x = torch.ones(2)
    assert repeated(partial(add, x, group))
    kept = weakref.ref(group.communicator)
    dist.destroy_process_group(group)
    del group
    gc.collect()
    return kept() is None


def test_repeated_calls_do_not_keep_their_group() -> None:
    assert run(drops_a_group) == [True, True]


def roots_of_other_types() -> list[str]:
    x = torch.ones(2)
    assert repeated(lambda: dist.broadcast(x, 0))
    wrong: list[Any] = [[0], 0.0, "0"]
    return [attempt(partial(dist.broadcast, x, root)).text for root in wrong]


def test_root_of_another_type_is_refused() -> None:
    for texts in run(roots_of_other_types):
        assert all(texts), texts
