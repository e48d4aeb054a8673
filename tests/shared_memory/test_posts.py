"""Calls that the compiled core posts, and finishes if the other ranks have made them: for callers that wait later."""

from __future__ import annotations

import gc
import time
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

import collshim.torch.distributed as dist
from collshim.calls.repeats import Finished
from collshim.errors import DeadlineError, UsageWarning
from collshim.torch.distributed.distributed_c10d import _get_default_group
from collshim.work import Work
from tests.engine.worlds import attempt, on_ranks, world
from tests.shared_memory.repeats import NEEDS_CORE, run

pytestmark = [pytest.mark.processes, NEEDS_CORE]

MANY = 40
"""How often calls are made of which the core finishes some: whether it finishes one depends on how ranks run."""


def posts(call: Callable[[], Work[Any]]) -> tuple[bool, Any]:
    """Make a call many times; return whether the core finished one of them when it was posted, and the last result."""
    finished, result = False, None
    for _ in range(MANY):
        work = call()
        finished = finished or type(work) is Finished
        result = work.wait()
    return finished, result


def _forms(value: float) -> dict[str, Callable[[], Work[Any]]]:
    """Return each form of a call of the engine, with and without a tensor for the result."""
    comm, rank, size = world(), world().rank, world().size
    x, many = torch.full((3,), value + rank), torch.arange(3.0 * size).view(size, 3) + 100 * rank + value
    out, outs, whole = torch.empty(3), torch.empty(size, 3), x.clone()
    lines, listed = [*many], [torch.empty(3) for _ in range(size)]
    return {
        "all_reduce": lambda: comm.all_reduce(x, out=out),
        "all_reduce, in place": lambda: comm.all_reduce(whole.fill_(value + rank), out=whole),
        "all_reduce, no out": lambda: comm.all_reduce(x),
        "reduce": lambda: comm.reduce(x, 1, out=out),
        "reduce, no out": lambda: comm.reduce(x, 1),
        "broadcast": lambda: comm.broadcast(x, 1, out=out),
        "broadcast, no out": lambda: comm.broadcast(x, 1),
        "all_gather": lambda: comm.all_gather(x, out=outs),
        "all_gather, list": lambda: comm.all_gather(x, out=listed),
        "all_gather, no out": lambda: comm.all_gather(x),
        "gather, no out": lambda: comm.gather(x, 1),
        "scatter": lambda: comm.scatter(many if rank == 1 else None, 1, out=out),
        "reduce_scatter": lambda: comm.reduce_scatter(many, out=out),
        "reduce_scatter, no out": lambda: comm.reduce_scatter(many),
        "all_to_all": lambda: comm.all_to_all(many, out=outs),
        "all_to_all, lists": lambda: comm.all_to_all(lines, out=listed),
        "all_to_all, no out": lambda: comm.all_to_all(many),
        "barrier": lambda: comm.barrier(),
    }


def _plain(result: Any) -> Any:
    return [part.tolist() for part in result] if isinstance(result, list | Tensor) else result


def of_each_form() -> list[tuple[str, bool, bool]]:
    """Return whether the core finishes calls of each form, and whether they then compute what the first computes."""
    firsts = {name: _plain(call().wait()) for name, call in _forms(3.0).items()}
    found = []
    for name in firsts:
        finished, _ = posts(_forms(1.0)[name])
        also, result = posts(_forms(3.0)[name])
        found.append((name, finished or also, _plain(result) == firsts[name]))
    return found


@pytest.mark.parametrize("size", [2, 3])
def test_every_form_is_finished_with_the_same_result(size: int) -> None:
    for rank in run(of_each_form, size):
        assert [name for name, _, is_same in rank if not is_same] == []
        if size == 2:
            assert [name for name, finished, _ in rank if not finished] == []


def of_torch() -> tuple[bool, float]:
    x, finished = torch.ones(2), False
    for _ in range(MANY):
        work: Any = dist.all_reduce(x, async_op=True)
        finished = finished or type(work._work) is Finished
        work.wait()
        x.div_(2)
    return finished, x[0].item()


def test_functions_with_async_op_are_finished_too() -> None:
    assert run(of_torch) == [(True, 1.0)] * 2


def results_of_their_own() -> bool:
    comm = world()
    kept = [comm.all_reduce(torch.full((2,), float(number))).wait() for number in range(MANY)]
    return all(torch.equal(result, torch.full((2,), 2.0 * number)) for number, result in enumerate(kept))


def test_each_call_without_out_returns_a_tensor_of_its_own() -> None:
    assert run(results_of_their_own) == [True, True]


def under_another_default_device() -> set[str]:
    comm, x = world(), torch.ones(2, device="cpu")
    with torch.device("meta"):
        return {comm.all_reduce(x).wait().device.type for _ in range(MANY)}


def test_result_lies_on_the_device_of_the_input_whatever_the_default() -> None:
    assert run(under_another_default_device) == [{"cpu"}] * 2


def after_others_need_a_gradient() -> list[bool]:
    comm, found = world(), []
    for number in range(MANY):
        needs = number % 2 == 1 and comm.rank == 1
        x = torch.ones(2, requires_grad=needs)
        result = comm.all_reduce(x).wait()
        found.append(result.requires_grad)
        if number % 2:
            result.sum().backward()
            assert not needs or x.grad is not None
    return found


def test_result_joins_the_graph_if_another_rank_needs_a_gradient() -> None:
    assert run(after_others_need_a_gradient) == [[False, True] * (MANY // 2)] * 2


def counted(call: Callable[[], object]) -> int:
    """Return how many of many calls warn of a usage."""
    warned = 0
    for _ in range(MANY):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        warned += any(issubclass(warning.category, UsageWarning) for warning in caught)
    return warned


def changes_its_input() -> tuple[int, int, int]:
    comm, x, out = world(), torch.ones(2), torch.empty(2)
    own, uncounted = torch.ones(2), torch.ones(2)

    def changes(post: Callable[[], Any], tensor: Tensor) -> None:
        work = post()
        tensor.fill_(1.0)
        work.wait()

    return (
        counted(lambda: changes(lambda: comm.all_reduce(x, out=out), x)),
        counted(lambda: changes(lambda: comm.all_reduce(own, out=own), own)),
        counted(lambda: changes(lambda: dist.all_reduce(uncounted, async_op=True), uncounted)),
    )


def test_change_of_the_input_before_the_wait_is_reported_each_time() -> None:
    assert run(changes_its_input) == [(MANY,) * 3] * 2


def overlaps() -> int:
    comm, x, y = world(), torch.ones(2), torch.ones(2)

    def both() -> None:
        first = comm.all_reduce(x, out=x)
        second = comm.all_reduce(y, out=x)
        first.wait()
        second.wait()

    return counted(both)


def test_overlap_with_a_call_that_is_not_waited_for_is_reported_each_time() -> None:
    assert run(overlaps) == [MANY] * 2


def leaks() -> list[str]:
    comm, x = world(), torch.ones(2)
    group = comm.subgroup([0, 1])
    assert group is not None
    for number in range(MANY):
        work = group.all_reduce(x, out=x)
        if number < MANY - 1:
            work.wait()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        group.close()
    return [str(warning.message) for warning in caught]


def test_call_that_is_not_waited_for_is_named_when_its_group_is_closed() -> None:
    line = leaks.__code__.co_firstlineno + 5
    for texts in run(leaks):
        assert len(texts) == 1
        assert f"test_posts.py:{line}" in texts[0]
        assert "was not waited for" in texts[0]


def after_a_dropped_work() -> tuple[bool, list[str]]:
    comm, x = world(), torch.ones(2)
    group = comm.subgroup([0, 1])
    assert group is not None
    group.all_reduce(x, out=x)
    finished, _ = posts(lambda: group.all_reduce(x, out=x))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        group.close()
    return finished, [str(warning.message) for warning in caught]


def test_dropped_work_does_not_slow_later_calls_and_is_named() -> None:
    for finished, texts in run(after_a_dropped_work):
        assert finished
        assert [("was not waited for" in text) for text in texts] == [True]


def disagrees() -> str:
    comm, x, y = world(), torch.ones(2), torch.ones(2)
    for _ in range(MANY):
        comm.all_reduce(x, out=x).wait()
        comm.all_reduce(x, "max", out=y).wait()
    op = "max" if comm.rank else "sum"
    return attempt(lambda: comm.all_reduce(x, op, out=x if op == "sum" else y).wait()).text


def test_calls_that_disagree_are_reported_by_the_wait() -> None:
    line = disagrees.__code__.co_firstlineno + 6
    for text in run(disagrees):
        assert text.count(f"test_posts.py:{line}") == 2, text


def misses_a_rank() -> tuple[float, float]:
    comm, x = world(), torch.ones(2)
    for _ in range(MANY):
        comm.all_reduce(x, out=x).wait()
        posted_by_torch: Any = dist.all_reduce(x, async_op=True)
        posted_by_torch.wait()
    comm.timeout = _get_default_group().deadline = 0.2
    if comm.rank == 1:
        time.sleep(1.5)
        return 0.0, 0.0
    began = time.monotonic()
    work = comm.all_reduce(x, out=x)
    posted = time.monotonic() - began
    with pytest.raises(DeadlineError):
        work.wait()
    return posted, time.monotonic() - began


def test_post_does_not_wait_for_a_missing_rank() -> None:
    (posted, waited), _ = run(misses_a_rank)
    assert posted < 0.1
    assert 0.1 < waited < 1.4


def works() -> dict[str, Any]:
    """Return what a finished work says before and after its wait."""
    comm, x, found = world(), torch.ones(2), dict[str, Any]()
    for _ in range(MANY):
        work = comm.all_reduce(x, "max", out=x)
        if type(work) is Finished and not found:
            before = work.done(), str(work.call).partition("(")[0], repr(work).rpartition(", ")[2]
            wrong: list[Any] = [-1.0, "soon", True]
            texts = [attempt(partial(work.wait, timeout)).text for timeout in wrong]
            views = work.then(lambda result: result + 1).wait().tolist(), work.then(lambda one: one * 2).wait().tolist()
            found = {"before": before, "refused": all(texts), "views": views, "again": work.wait() is not x}
        work.wait()
    return found


def test_finished_work_behaves_like_other_works() -> None:
    for rank in on_ranks(works, 2, "processes"):
        assert rank["before"] == (True, "all_reduce", "over>")
        assert rank["refused"]
        assert rank["views"] == ([2.0, 2.0], [4.0, 4.0])
        assert rank["again"]


def of_many_sizes() -> tuple[int, int]:
    """Return for how many of many sizes the core finishes calls, and repeats those of a caller that waits at once."""
    comm, tensors = world(), [torch.ones(count) for count in range(1, 31)]
    finished = {len(x) for x in tensors for _ in range(MANY) if type(_waited(comm.all_reduce(x, out=x))) is Finished}
    for _ in range(4):
        for x in tensors:
            dist.all_reduce(x)
    kept = [repeat for repeats in comm.repeats.values() for repeat in repeats]
    return len(finished), sum(any(repeat.fits(x, x) for repeat in kept) for x in tensors)


def _waited(work: Work[Any]) -> Work[Any]:
    work.wait()
    return work


def test_calls_of_many_sizes_are_kept() -> None:
    assert run(of_many_sizes) == [(30, 30)] * 2


def drops_a_group() -> bool:
    group = world().subgroup([0, 1])
    assert group is not None
    x = torch.ones(2)
    for _ in range(MANY):
        group.all_reduce(x, out=x).wait()
    kept = weakref.ref(group)
    del group
    gc.collect()
    return kept() is None


def test_finished_calls_do_not_keep_their_group() -> None:
    assert run(drops_a_group) == [True, True]
