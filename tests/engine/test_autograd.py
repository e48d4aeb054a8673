"""Gradients are the derivatives of the sum of all ranks' losses, compared with finite differences of the world."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch

import collshim
from tests.engine.scenarios.gradients import (
    CASES,
    CHANGED,
    LINEAR,
    TWICE,
    by_name,
    changed_in_place,
    first_order,
    linear,
    second_order,
    twice,
)
from tests.engine.worlds import attempt, on_ranks, world

pytestmark = pytest.mark.threads

SIZE = 3
EVERYBODY = (True, True, True)
SOME = [(True, False, True), (False, True, False), (False, False, True)]


def _close(found: Any, wanted: Any, tolerance: float) -> bool:
    return torch.allclose(torch.as_tensor(found), torch.as_tensor(wanted), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_gradients_match_the_summed_losses(name: str) -> None:
    for rank, (found, wanted) in enumerate(on_ranks(first_order, SIZE, "threads", CASES[name], EVERYBODY)):
        found = torch.zeros_like(wanted) if found is None else found
        assert _close(found, wanted, 1e-6), f"rank {rank} has {found}, should be {wanted}"


@pytest.mark.parametrize("needs", SOME, ids=str)
@pytest.mark.parametrize("name", [name for name in CASES if "send" not in name])
def test_ranks_without_requires_grad_join(name: str, needs: tuple[bool, ...]) -> None:
    for rank, (found, wanted) in enumerate(on_ranks(first_order, SIZE, "threads", CASES[name], needs)):
        if needs[rank]:
            found = torch.zeros_like(wanted) if found is None else found
            assert _close(found, wanted, 1e-6), f"rank {rank} has {found}, should be {wanted}"
        else:
            assert found is None


@pytest.mark.parametrize("name", LINEAR)
def test_gradients_can_be_differentiated_again(name: str) -> None:
    for rank, (found, wanted) in enumerate(on_ranks(second_order, SIZE, "threads", CASES[name])):
        assert _close(found, wanted, 1e-5), f"rank {rank} has {found}, should be {wanted}"


@pytest.mark.parametrize("name", TWICE)
@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")  # threads share the filters
def test_second_backward_without_all_ranks_is_refused(checked: str, name: str) -> None:
    op = name.partition(",")[0]
    text = f"{op}: its backward is differentiated, should be done once: the other ranks cannot take part in a second"
    refused, total = on_ranks(twice, SIZE, checked, name)[1]
    assert (refused.raised[1:3], refused.text) == (
        ("ArgumentError", "CollshimError"),
        f"{text} backward (rank 1 of 3)",
    )
    assert total == 3


@pytest.mark.parametrize("name", TWICE)
@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")  # threads share the filters
def test_independent_gradient_is_not_in_the_graph(name: str) -> None:
    """The losses are linear, so ``create_graph`` is harmless."""
    assert on_ranks(linear, SIZE, "threads", name)[1] == (False, True)


@pytest.mark.parametrize("name", CHANGED)
def test_linear_collective_input_can_be_changed(name: str) -> None:
    for before, after in on_ranks(changed_in_place, SIZE, "threads", name):
        assert (before is None) == (after is None)
        assert before is None or torch.equal(before, after)


def _backwards(op: str) -> Any:
    """Return the gradient of two backwards through one collective with nothing retained; or the error."""
    comm = world()
    tensor = torch.ones(2, requires_grad=True)
    loss = comm.all_reduce(tensor, op).wait().sum()
    texts = [attempt(loss.backward).text for _ in range(2)]
    return tensor.grad, texts[-1]


@pytest.mark.parametrize("op", ["sum", "avg"])
def test_linear_collective_allows_a_second_backward(op: str) -> None:
    for gradient, text in on_ranks(_backwards, 2, "threads", op):
        assert (gradient.tolist(), text) == ([4.0, 4.0] if op == "sum" else [2.0, 2.0], "")


@pytest.mark.parametrize("op", ["prod", "max"])
def test_saved_tensors_are_freed_after_the_backward(op: str) -> None:
    for _, text in on_ranks(_backwards, 2, "threads", op):
        assert "Trying to backward through the graph a second time" in text


def _changed(op: str) -> Any:
    """Change a result, or an input, that the rule of a minimum or a product reads."""
    comm = world()
    mine = torch.ones(2, requires_grad=True) * 1
    result = comm.all_reduce(mine, op).wait()
    (result if op == "max" else mine).add_(1)
    return attempt(result.sum().backward).text


@pytest.mark.parametrize("op", ["prod", "min", "max"])
def test_change_of_a_saved_tensor_is_an_error(op: str) -> None:
    for text in on_ranks(_changed, 2, "threads", op):
        assert "has been modified by an inplace operation" in text


_BETWEEN_PROCESSES = (
    "all_reduce prod",
    "all_gather_ragged",
    "gather",
    "reduce_scatter prod, ragged",
    "all_to_all, ragged",
    "send and recv",
    "send, and recv from anybody",
)


@pytest.mark.parametrize("name", _BETWEEN_PROCESSES)
def test_gradients_between_processes(name: str) -> None:
    for found, wanted in on_ranks(by_name, SIZE, "processes", name, EVERYBODY):
        assert _close(found, wanted, 1e-6)


def _unchecked() -> Any:
    """With the check off every rank's input needs a gradient; only the root's loss uses a gather."""
    comm = world()
    x = torch.full((2,), float(comm.rank + 1), requires_grad=True)
    (comm.all_reduce(x, "prod").wait() * (comm.rank + 1)).sum().backward()
    y = torch.ones(comm.size, 2, requires_grad=True)
    comm.reduce_scatter(y, "prod").wait().sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    return x.grad.tolist(), y.grad.tolist()


def test_gradients_with_and_without_the_check(transport: str) -> None:
    found = on_ranks(_unchecked, 2, transport)
    assert found == [([6.0, 6.0], [[1.0, 1.0]] * 2), ([3.0, 3.0], [[1.0, 1.0]] * 2)]


def _tokens() -> Any:
    comm = world()
    x = torch.ones(2, requires_grad=True)
    works: dict[str, Any] = {
        "reduce": comm.reduce(x, 1),
        "gather": comm.gather(x, 1),
        "gather_ragged": comm.gather_ragged(x, 1),
    }
    if comm.rank:
        works["recv"] = comm.recv(comm.rank - 1, like=x.detach())
    if comm.rank < comm.size - 1:
        works["send"] = comm.send(x, comm.rank + 1)
    results = {name: work.wait() for name, work in works.items()}
    none = {name for name, result in results.items() if result is None}
    tokens = {name for name, work in works.items() if work.token is not None}
    losses = [work.token if work.token is not None else _sum(results[name]) for name, work in works.items()]
    torch.stack(losses).sum().backward()
    return none == tokens, sorted(none), x.grad


def _sum(result: Any) -> torch.Tensor:
    return sum((part.sum() for part in result), torch.zeros(())) if isinstance(result, list) else result.sum()


def test_rank_without_result_joins_through_the_token() -> None:
    found = on_ranks(_tokens, 3, "threads")
    rooted = ["gather", "gather_ragged", "reduce"]
    assert [(same, none) for same, none, _ in found] == [(True, [*rooted, "send"]), (True, ["send"]), (True, rooted)]
    assert [grad.tolist() for _, _, grad in found] == [[4.0, 4.0], [4.0, 4.0], [3.0, 3.0]]


def _without() -> Any:
    comm = world()
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        quiet = comm.all_reduce(x).wait()
    whole = comm.all_reduce(torch.ones(3, dtype=torch.int64)).wait()
    plain = comm.reduce(torch.ones(3), 0)
    plain.wait()
    out = torch.zeros(3)
    into = comm.all_reduce(x, out=out).wait()
    return quiet.requires_grad, whole.requires_grad, plain.token, into.requires_grad, x.requires_grad


def test_nothing_is_tracked_unless_requested(transport: str) -> None:
    assert on_ranks(_without, 2, transport) == [(False, False, None, False, True)] * 2


def _memory() -> Any:
    """Neither a result nor its graph outlives its references."""
    comm = world()
    x = torch.ones(1000, requires_grad=True)
    doubled = x * 2
    got = comm.all_gather(doubled).wait()
    gone = [weakref.ref(got), weakref.ref(doubled)]
    got.sum().backward()
    del got, doubled
    return _are_gone(comm, gone)


def _are_gone(comm: Any, references: list[Any]) -> list[bool]:
    for _ in range(3):
        comm.barrier().wait()
        gc.collect()
    return [reference() is None for reference in references]


def test_graph_is_freed_with_its_holder(transport: str) -> None:
    assert on_ranks(_memory, 2, transport) == [[True, True]] * 2


def _unneeded() -> Any:
    """Return what the graph holds of a linear collective before the backward."""
    comm = world()
    doubled = torch.ones(1000, requires_grad=True) * 2
    got = comm.all_gather(doubled).wait()
    total, gone = got.sum(), [weakref.ref(got), weakref.ref(doubled)]
    del got, doubled
    freed = _are_gone(comm, gone)
    total.backward()
    return freed


def test_linear_graph_holds_neither_input_nor_result() -> None:
    assert on_ranks(_unneeded, 2, "threads") == [[True, True]] * 2


def _twice() -> Any:
    comm = world()
    x = torch.ones(2, requires_grad=True)
    loss = comm.all_reduce(x).wait().sum()
    loss.backward(retain_graph=True)
    loss.backward()
    y = torch.ones(2, requires_grad=True)
    again = comm.all_reduce(y, "prod").wait().sum()
    again.backward()
    refused = attempt(again.backward)
    return x.grad, refused.raised[0]


def test_retained_graph_can_be_used_again() -> None:
    for grad, refused in on_ranks(_twice, 2, "threads"):
        assert (grad.tolist(), refused) == ([4.0, 4.0], "RuntimeError")


def _complex() -> Any:
    """Return gradients of complex inputs, in torch's convention: those of the same sum computed on one rank."""
    comm = world()
    everyone = [torch.tensor([1 + 2j, 3 - 1j]) * (rank + 1) for rank in range(comm.size)]
    mine = everyone[comm.rank].clone().requires_grad_()
    product = comm.all_reduce(mine, "prod").wait()
    (product.abs().sum() * (comm.rank + 1)).backward()
    leaves = [part.clone().requires_grad_() for part in everyone]
    together = leaves[0] * leaves[1]
    (together.abs().sum() * 3).backward()
    return mine.grad, leaves[comm.rank].grad


def test_gradients_of_complex_products_match_torch() -> None:
    for found, wanted in on_ranks(_complex, 2, "threads"):
        assert torch.allclose(found, wanted)


def test_numpy_rank_has_no_gradient() -> None:
    """A rank with NumPy arrays gets NumPy arrays, whatever the others need."""

    def fn() -> Any:
        comm = collshim.current().communicator
        x = torch.ones(2, requires_grad=True)
        return comm.all_reduce(x if comm.rank else x.detach().numpy()).wait()

    numpy, tensor = collshim.launch(fn, 2, timeout=200)
    assert (type(numpy).__name__, tensor.requires_grad) == ("ndarray", True)
