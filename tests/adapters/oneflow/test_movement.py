"""oneflow.comm: all_gather, gather, broadcast, scatter, all_to_all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import collshim
import collshim.oneflow as flow

if TYPE_CHECKING:
    from tests.adapters.oneflow.conftest import Refused, Run

comm: Any = flow.comm  # what types forbid is tried too


def rows(rank: int) -> torch.Tensor:
    return flow.tensor([[1, 2], [3, 4]]) + 10 * rank


def test_all_gather_replaces_the_entries_and_leaves_the_old_ones_alone(run: Run, size: int) -> None:
    def rank() -> tuple[object, Any, bool]:
        old = [flow.zeros(2, 2, dtype=flow.int64) for _ in range(size)]
        tensor_list = list(old)
        returned = comm.all_gather(tensor_list, rows(flow.env.get_rank()))
        untouched = all(tensor.sum() == 0 for tensor in old)
        return returned, [tensor.tolist() for tensor in tensor_list], untouched

    wanted = [rows(other).tolist() for other in range(size)]
    assert run(rank, size) == [(None, wanted, True)] * size


def test_all_gather_takes_any_entries(run: Run) -> None:
    def rank() -> Any:
        tensor_list: list[Any] = [None, "anything"]
        comm.all_gather(tensor_list, flow.tensor([1.0, 2.0]) + flow.env.get_rank())
        return [tensor.tolist() for tensor in tensor_list]

    assert run(rank, 2) == [[[1.0, 2.0], [2.0, 3.0]]] * 2


def test_all_gather_of_scalars_and_of_tensors_that_are_not_contiguous(run: Run) -> None:
    def rank() -> Any:
        scalars: list[Any] = [None, None]
        comm.all_gather(scalars, flow.tensor(7 + flow.env.get_rank()))
        turned: list[Any] = [None, None]
        comm.all_gather(turned, rows(flow.env.get_rank()).T)
        return [int(tensor) for tensor in scalars], [tensor.tolist() for tensor in turned]

    assert run(rank, 2) == [([7, 8], [[[1, 3], [2, 4]], [[11, 13], [12, 14]]])] * 2


def test_all_gather_gives_the_kind_of_the_input(run: Run) -> None:
    def rank() -> Any:
        tensor_list: list[Any] = [None, None]
        comm.all_gather(tensor_list, np.full(2, flow.env.get_rank(), dtype=np.int32))
        return [(type(array), array.dtype, array.tolist()) for array in tensor_list]

    wanted = [(np.ndarray, np.dtype(np.int32), [rank, rank]) for rank in range(2)]
    assert run(rank, 2) == [wanted] * 2


def test_the_gradient_of_all_gather_is_the_sum_over_all_ranks_losses(run: Run, size: int) -> None:
    def rank() -> Any:
        here = flow.env.get_rank()
        tensor = flow.tensor([1.0 + here, 2.0], requires_grad=True)
        tensor_list: list[Any] = [None] * size
        comm.all_gather(tensor_list, tensor)
        torch.stack([entry.sum() * (other + 1) for other, entry in enumerate(tensor_list)]).sum().backward()
        assert tensor.grad is not None
        return tensor.grad.tolist()

    assert run(rank, size) == [[float(size * (here + 1))] * 2 for here in range(size)]


def test_an_entry_of_all_gather_may_be_written_into_though_it_carries_a_gradient(run: Run) -> None:
    def rank() -> Any:
        tensor_list: list[Any] = [None, None]
        comm.all_gather(tensor_list, flow.ones(2, requires_grad=True))
        tensor_list[0].mul_(3)
        return [entry.tolist() for entry in tensor_list]

    assert run(rank, 2) == [[[3.0, 3.0], [1.0, 1.0]]] * 2


@pytest.mark.parametrize("entries", [1, 3])
def test_all_gather_refuses_a_list_without_one_entry_per_rank(run: Run, refused: Refused, entries: int) -> None:
    def rank() -> str:
        return refused(AssertionError, lambda: comm.all_gather([None] * entries, rows(0)))

    assert all(f"length of tensor_list is {entries}, should be 2" in text for text in run(rank, 2))


def test_all_gather_refuses_a_tuple_and_swapped_arguments(run: Run, refused: Refused) -> None:
    def rank() -> tuple[str, str]:
        entries: Any = (None, None)
        swapped: Any = [rows(0), rows(0)]
        first = refused(AssertionError, lambda: comm.all_gather(entries, rows(0)))
        return first, refused(AssertionError, lambda: comm.all_gather([None, None], swapped))

    for tuple_text, swapped_text in run(rank, 2):
        assert "tensor_list is <class 'tuple'>, should be a list" in tuple_text
        assert "tensor is <class 'list'>, should be a tensor" in swapped_text


@pytest.mark.parametrize("function", ["all_gather", "gather"])
def test_shapes_that_differ_between_ranks_are_told_on_every_rank(run: Run, function: str) -> None:
    def rank() -> str:
        entries: list[Any] = [None, None]
        tensor = flow.zeros(2 + flow.env.get_rank())
        arguments = {"all_gather": (entries, tensor), "gather": (tensor, entries)}
        with pytest.raises(RuntimeError) as caught:
            getattr(comm, function)(*arguments[function])
        assert isinstance(caught.value, collshim.MismatchError)
        assert entries == [None, None]
        return str(caught.value)

    first, second = run(rank, 2)
    assert first == second
    assert "disagree on shape" in first


def test_gather_fills_the_list_of_every_rank_that_gives_one(run: Run, size: int) -> None:
    def rank() -> Any:
        here = flow.env.get_rank()
        gather_list: list[Any] | None = [None] * size if here != 1 else None
        returned = comm.gather(rows(here), gather_list, dst=0)
        return returned, gather_list and [tensor.tolist() for tensor in gather_list]

    wanted = [rows(other).tolist() for other in range(size)]
    assert run(rank, size) == [(None, None if here == 1 else wanted) for here in range(size)]


def test_gather_does_not_look_at_dst(run: Run) -> None:
    def rank() -> Any:
        gather_list: list[Any] = [None, None]
        anything: Any = "x"
        comm.gather(flow.tensor(flow.env.get_rank()), gather_list, anything)
        return [int(tensor) for tensor in gather_list]

    assert run(rank, 2) == [[0, 1]] * 2


def test_gather_refuses_a_list_of_a_wrong_length_before_anything_is_sent(run: Run, refused: Refused) -> None:
    def rank() -> str:
        return refused(AssertionError, lambda: comm.gather(rows(0), [None]))

    assert all("length of gather_list is 1, should be 2" in text for text in run(rank, 2))


def test_broadcast_writes_into_the_tensor(run: Run, size: int) -> None:
    def rank() -> Any:
        base = flow.zeros(3, 2, dtype=flow.int64) + flow.env.get_rank()
        returned = comm.broadcast(base[1], size - 1)
        return returned, base.tolist()

    wanted = [(None, [[here] * 2, [size - 1] * 2, [here] * 2]) for here in range(size)]
    assert run(rank, size) == wanted


def test_broadcast_of_a_tensor_that_is_not_contiguous_keeps_its_strides(run: Run) -> None:
    def rank() -> Any:
        base = flow.tensor([[1, 2, 3], [4, 5, 6]]) + 10 * flow.env.get_rank()
        tensor = base.T
        comm.broadcast(tensor, 1)
        return tensor.tolist(), tensor.is_contiguous(), base.tolist()

    wanted = ([[11, 14], [12, 15], [13, 16]], False, [[11, 12, 13], [14, 15, 16]])
    assert run(rank, 2) == [wanted] * 2


def test_broadcast_takes_a_leaf_that_requires_a_gradient(run: Run) -> None:
    def rank() -> Any:
        tensor = flow.tensor([1.0 + flow.env.get_rank()] * 2, requires_grad=True)
        comm.broadcast(tensor, 0)
        return tensor.tolist(), tensor.requires_grad

    assert run(rank, 2) == [([1.0, 1.0], True)] * 2


@pytest.mark.parametrize("src", [1.0, None, np.int64(0)])
def test_broadcast_refuses_a_src_that_is_no_int(run: Run, refused: Refused, src: Any) -> None:
    def rank() -> str:
        return refused(AssertionError, lambda: comm.broadcast(rows(0), src))

    assert all("src is" in text and "should be an int" in text for text in run(rank, 2))


@pytest.mark.parametrize("src", [2, -1])
def test_a_root_that_is_no_rank_is_refused(run: Run, refused: Refused, src: int) -> None:
    def rank() -> list[str]:
        return [
            refused(IndexError, lambda: comm.broadcast(rows(0), src)),
            refused(IndexError, lambda: comm.scatter(rows(0), [rows(0)] * 2, src)),
            refused(IndexError, lambda: comm.reduce(rows(0), src)),
        ]

    assert all(f"{src}, should be from 0 to 1" in text for texts in run(rank, 2) for text in texts)


@pytest.mark.parametrize("src", [0, 1])
def test_scatter_hands_out_the_list_of_src(run: Run, src: int) -> None:
    def rank() -> Any:
        tensor = flow.zeros(2, 2, dtype=flow.int64)
        scatter_list = [rows(0), rows(1)] if flow.env.get_rank() == src else None
        returned = comm.scatter(tensor, scatter_list, src)
        return returned, tensor.tolist()

    assert run(rank, 2) == [(None, rows(0).tolist()), (None, rows(1).tolist())]


def test_scatter_ignores_a_list_off_src(run: Run) -> None:
    def rank() -> Any:
        tensor = flow.zeros(2, dtype=flow.int64)
        wrong = [flow.tensor([1001, 1002])]
        comm.scatter(tensor, [flow.tensor([1, 2]), flow.tensor([101, 102])] if flow.env.get_rank() == 0 else wrong)
        return tensor.tolist()

    assert run(rank, 2) == [[1, 2], [101, 102]]


def test_scatter_rebinds_the_tensor_of_src_and_writes_into_the_others(run: Run) -> None:
    def rank() -> Any:
        base = flow.zeros(3, 2, dtype=flow.int64)
        tensor = base[1:2]
        parts = [flow.tensor([[1, 2]]), flow.tensor([[101, 102]])]
        comm.scatter(tensor, parts if flow.env.get_rank() == 0 else None)
        received = tensor.tolist()
        tensor += 5000
        return received, base.tolist(), parts[0].tolist()

    of_src, of_other = run(rank, 2)
    assert of_src == ([[1, 2]], [[0, 0]] * 3, [[5001, 5002]])
    assert of_other == ([[101, 102]], [[0, 0], [5101, 5102], [0, 0]], [[1, 2]])


def test_the_tensor_of_src_takes_the_shape_of_its_own_part(run: Run) -> None:
    def rank() -> Any:
        tensor = flow.zeros(2, dtype=flow.int64)
        comm.scatter(tensor, [flow.tensor([1, 2, 3]), flow.tensor([4, 5])] if flow.env.get_rank() == 0 else None)
        return tensor.tolist()

    assert run(rank, 2) == [[1, 2, 3], [4, 5]]


def test_scatter_of_numpy_arrays_writes_into_them(run: Run) -> None:
    def rank() -> Any:
        array = np.zeros(2, dtype=np.int64)
        comm.scatter(array, [np.array([1, 2]), np.array([3, 4])] if flow.env.get_rank() == 0 else None)
        return array.tolist()

    assert run(rank, 2) == [[1, 2], [3, 4]]


def test_scatter_refuses_a_wrong_list_on_src_before_anything_is_sent(run: Run, refused: Refused) -> None:
    def rank() -> list[str]:
        tensor = flow.zeros(2, dtype=flow.int64)
        good = [flow.tensor([1, 2]), flow.tensor([3, 4])]
        texts = []
        if flow.env.get_rank() == 0:
            pair: Any = tuple(good)
            texts = [
                refused(AssertionError, lambda: comm.scatter(tensor, None)),
                refused(AssertionError, lambda: comm.scatter(tensor, pair)),
                refused(AssertionError, lambda: comm.scatter(tensor, good[:1])),
                refused(AssertionError, lambda: comm.scatter(tensor, [good[0], flow.tensor([3, 4, 5])])),
                refused(RuntimeError, lambda: comm.scatter(tensor, [good[0], flow.tensor([3.0, 4.0])])),
            ]
        comm.scatter(tensor, good if flow.env.get_rank() == 0 else None)
        assert tensor.tolist() == good[flow.env.get_rank()].tolist()
        return texts

    texts = run(rank, 2)[0]
    assert "should be a list" in texts[0]
    assert "should be a list" in texts[1]
    assert "length of scatter_list is 1, should be 2" in texts[2]
    assert "invalid tensor size at index 1: oneflow.Size([2]) vs oneflow.Size([3])" in texts[3]
    assert "dtype of scatter_list[1] is torch.float32, should be torch.int64" in texts[4]


def test_all_to_all_fills_the_same_output_tensors(run: Run, size: int) -> None:
    def rank() -> Any:
        here = flow.env.get_rank()
        sources = [flow.tensor([100 * here + 10 * other + 1, 100 * here + 10 * other + 2]) for other in range(size)]
        outputs = [flow.zeros(2, dtype=flow.int64) for _ in range(size)]
        before = list(outputs)
        returned = comm.all_to_all(outputs, sources)
        same = all(new is old for new, old in zip(outputs, before, strict=True))
        return returned, [output.tolist() for output in outputs], same

    def wanted(here: int) -> list[list[int]]:
        return [[100 * other + 10 * here + 1, 100 * other + 10 * here + 2] for other in range(size)]

    assert run(rank, size) == [(None, wanted(here), True) for here in range(size)]


def test_the_own_output_of_all_to_all_is_the_own_input(run: Run) -> None:
    def rank() -> Any:
        here = flow.env.get_rank()
        sources = [flow.zeros(2), flow.zeros(2)]
        outputs = [flow.ones(2), flow.ones(2)]
        comm.all_to_all(outputs, sources)
        for output in outputs:
            output.add_(7)
        return [source.tolist() for source in sources], here

    for sources, here in run(rank, 2):
        assert sources[here] == [7.0, 7.0]
        assert sources[1 - here] == [0.0, 0.0]


def test_one_list_may_be_both_arguments_of_all_to_all(run: Run) -> None:
    def rank() -> Any:
        here = flow.env.get_rank()
        tensors = [flow.tensor([100 * here + 1]), flow.tensor([100 * here + 11])]
        comm.all_to_all(tensors, tensors)
        return [int(tensor) for tensor in tensors]

    assert run(rank, 2) == [[1, 101], [11, 111]]


def test_all_to_all_refuses_what_is_no_list_of_one_tensor_per_rank(run: Run, refused: Refused) -> None:
    def rank() -> list[str]:
        good = [rows(0), rows(0)]
        wrong: Any = [rows(0), "x"]
        pair: Any = tuple(good)
        return [
            refused(AssertionError, lambda: comm.all_to_all(good, good[:1])),
            refused(AssertionError, lambda: comm.all_to_all(pair, good)),
            refused(AssertionError, lambda: comm.all_to_all(good, wrong)),
            refused(AssertionError, lambda: comm.all_to_all([good[0], None], good)),
            refused(AttributeError, lambda: comm.all_to_all([None, good[1]], good)),
            refused(AttributeError, lambda: comm.all_to_all(good, [None, good[1]])),
        ]

    assert all("all_to_all" in text for texts in run(rank, 2) for text in texts)
