"""comm_func: broadcast, reduce, gather_into_tensor, scatter_tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from collshim.mindspore.communication import comm_func, create_group, get_rank

if TYPE_CHECKING:
    from tests.adapters.mindspore.conftest import Refused, Run

comm: Any = comm_func  # what types forbid is tried too


def values() -> torch.Tensor:
    return torch.arange(6.0).reshape(2, 3) + 10 * get_rank()


def of(rank: int) -> list[list[float]]:
    return (torch.arange(6.0).reshape(2, 3) + 10 * rank).tolist()


def test_broadcast_gives_every_rank_a_new_tensor(run: Run, size: int) -> None:
    def rank() -> Any:
        tensor = values()
        return comm.broadcast(tensor, size - 1).tolist(), torch.equal(tensor, values()), comm.broadcast(tensor).tolist()

    assert run(rank, size) == [(of(size - 1), True, of(0))] * size


def test_broadcast_gives_the_kind_of_the_input(run: Run) -> None:
    def rank() -> Any:
        output = comm.broadcast(np.array([get_rank()], dtype=np.int16), 1)
        return type(output), output.dtype, output.tolist()

    assert run(rank, 2) == [(np.ndarray, np.dtype(np.int16), [1])] * 2


@pytest.mark.parametrize("size", [2, 4])
def test_the_input_of_broadcast_gets_its_own_outputs_gradient(run: Run, size: int) -> None:
    def rank() -> Any:
        tensor = values().requires_grad_()
        output = comm.broadcast(tensor, 0)
        (output * (get_rank() + 1)).sum().backward()
        assert tensor.grad is not None
        return output.tolist(), tensor.grad.tolist()

    assert run(rank, size) == [(of(0), [[here + 1.0] * 3] * 2) for here in range(size)]


@pytest.mark.parametrize("dst", [0, 1])
def test_reduce_gives_dst_the_sum_and_the_others_one_element(run: Run, dst: int) -> None:
    def rank() -> Any:
        output = comm.reduce(values(), dst)
        return tuple(output.shape), output.dtype, output.tolist() if get_rank() == dst else None

    found = run(rank, 2)
    assert found[dst] == ((2, 3), torch.float32, [[10.0, 12.0, 14.0], [16.0, 18.0, 20.0]])
    assert found[1 - dst] == ((1,), torch.float32, None)


def test_reduce_with_another_op_of_numpy_arrays(run: Run) -> None:
    def rank() -> Any:
        output = comm.reduce(np.array([get_rank() + 2, 3]), 0, "prod")
        return type(output), output.dtype, output.shape, output.tolist()

    first, second = run(rank, 2)
    assert first == (np.ndarray, np.dtype(np.int64), (2,), [6, 9])
    assert second[:3] == (np.ndarray, np.dtype(np.int64), (1,))


@pytest.mark.parametrize("function", ["reduce", "gather_into_tensor"])
def test_the_gradient_is_that_of_the_output_of_dst(run: Run, size: int, function: str) -> None:
    def rank() -> Any:
        tensor = values().requires_grad_()
        output = getattr(comm, function)(tensor, 0)
        (output * 5).sum().backward()
        assert tensor.grad is not None
        return tensor.grad.tolist()

    assert run(rank, size) == [[[5.0] * 3] * 2] * size


@pytest.mark.parametrize("dst", [0, 1])
def test_gather_into_tensor_joins_on_dst_along_the_first_dimension(run: Run, dst: int) -> None:
    def rank() -> Any:
        output = comm.gather_into_tensor(values(), dst)
        return tuple(output.shape), output.tolist() if get_rank() == dst else None

    found = run(rank, 2)
    assert found[dst] == ((4, 3), of(0) + of(1))
    assert found[1 - dst] == ((1,), None)


@pytest.mark.parametrize("src", [0, 1])
def test_scatter_tensor_divides_the_tensor_of_src(run: Run, src: int) -> None:
    def rank() -> Any:
        tensor = torch.arange(12).reshape(4, 3) + 100 * get_rank()
        output = comm.scatter_tensor(tensor, src)
        array = comm.scatter_tensor(tensor.numpy(), src)
        assert isinstance(array, np.ndarray)
        assert array.tolist() == output.tolist()
        return output.tolist()

    whole = (torch.arange(12).reshape(2, 2, 3) + 100 * src).tolist()
    assert run(rank, 2) == whole


def test_the_gradient_of_scatter_tensor_reaches_src(run: Run) -> None:
    def rank() -> Any:
        tensor = torch.ones(4).requires_grad_()
        output = comm.scatter_tensor(tensor, 0)
        (output * (get_rank() + 1)).sum().backward()
        return None if tensor.grad is None else tensor.grad.tolist()

    assert run(rank, 2)[0] == [1.0, 1.0, 2.0, 2.0]


def test_roots_are_global_ranks_in_a_subgroup_too(run: Run) -> None:
    def rank() -> Any:
        here = get_rank()
        if here not in (1, 3):
            return None
        create_group("odd", [3, 1])
        reduced = comm.reduce(values(), 3, group="odd")
        gathered = comm.gather_into_tensor(torch.tensor([here]), 1, "odd")
        return (
            comm.broadcast(values(), 3, "odd").tolist(),
            reduced.tolist() if here == 3 else tuple(reduced.shape),
            gathered.tolist() if here == 1 else tuple(gathered.shape),
            comm.scatter_tensor(torch.arange(2) + 10 * here, 1, "odd").tolist(),
        )

    _, one, _, three = run(rank, 4)
    assert one == (of(3), (1,), [3, 1], [11])
    assert three == (of(3), [[40.0, 42.0, 44.0], [46.0, 48.0, 50.0]], (1,), [10])


@pytest.mark.parametrize("root", [2, -1])
@pytest.mark.parametrize("function", ["broadcast", "reduce", "gather_into_tensor", "scatter_tensor"])
def test_a_root_outside_the_group_is_refused(run: Run, refused: Refused, function: str, root: int) -> None:
    texts = run(lambda: refused(RuntimeError, lambda: getattr(comm, function)(values(), root)), 2)
    assert all(f"Group mccl_world_group doesn't contain the global rank {root}" in text for text in texts)


@pytest.mark.parametrize(
    ("function", "what"),
    [("broadcast", "src"), ("scatter_tensor", "src"), ("reduce", "dst"), ("gather_into_tensor", "dst")],
)
def test_other_types_are_refused(run: Run, refused: Refused, function: str, what: str) -> None:
    def rank() -> list[str]:
        called = getattr(comm, function)
        return [
            refused(TypeError, lambda: called(values(), "a")),
            refused(TypeError, lambda: called(1, 0)),
            refused(TypeError, lambda: called(values(), 0, group=None)),
        ]

    for texts in run(rank, 2):
        assert f"For {function}, the {what} must be int" in texts[0]
        assert f"For {function}, the input tensor must be tensor" in texts[1]
        assert "'group' must be type of string" in texts[2]
