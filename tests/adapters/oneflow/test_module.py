"""collshim.oneflow: its names, signatures, ranks and constructors; the world of one; ranks that are processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import collshim
import collshim.oneflow as flow

if TYPE_CHECKING:
    from tests.adapters.oneflow.conftest import Run


def test_env_tells_where_a_rank_stands(run: Run, size: int) -> None:
    def rank() -> tuple[int, ...]:
        env = flow.env
        return env.get_rank(), env.get_world_size(), env.get_local_rank(), env.get_node_size()

    assert run(rank, size) == [(here, size, here, 1) for here in range(size)]


def test_the_constructors_are_torchs() -> None:
    assert torch.equal(flow.tensor([[1, 2]], dtype=flow.int32), torch.tensor([[1, 2]], dtype=torch.int32))
    assert torch.equal(flow.zeros(2, 3), torch.zeros(2, 3))
    assert torch.equal(flow.zeros((2, 3), dtype=flow.int64), torch.zeros(2, 3, dtype=torch.int64))
    assert torch.equal(flow.ones([2], device="cpu"), torch.ones(2))
    assert torch.equal(flow.ones(()), torch.ones(()))
    assert torch.equal(flow.arange(3), torch.arange(3))
    assert torch.equal(flow.arange(1, 7, 2), torch.arange(1, 7, 2))
    assert flow.tensor([1.0], requires_grad=True).requires_grad
    assert isinstance(flow.tensor([1]), flow.Tensor)


@pytest.mark.parametrize("make", [flow.zeros, flow.ones])
def test_lengths_may_be_numpy_integers_beside_others(make: Any) -> None:
    assert make(2, np.int64(3)).shape == make((2, np.int64(3))).shape == (2, 3)
    assert make(True).shape == (1,)


@pytest.mark.parametrize("make", [flow.zeros, flow.ones])
@pytest.mark.parametrize("size", [2.5, np.int64(3), "a", None, [2.5], [[2]], range(3), np.array([2, 3])])
def test_what_is_no_shape_is_a_type_error(make: Any, size: Any) -> None:
    with pytest.raises(TypeError, match=r"constant\(\): argument 'shape' must be shape") as caught:
        make(size)
    assert isinstance(caught.value, collshim.ArgumentError)


@pytest.mark.parametrize("make", [flow.zeros, flow.ones])
@pytest.mark.parametrize("sizes", [((2,), 3), ([2], [3]), (2, 2.5), ()])
def test_sizes_of_two_forms_or_none_are_an_assertion_error(make: Any, sizes: Any) -> None:
    with pytest.raises(AssertionError, match="shape should be specified by tuple of int size") as caught:
        make(*sizes)
    assert isinstance(caught.value, collshim.ArgumentError)


def test_in_a_world_of_one_every_function_gives_the_ranks_own_values(run: Run) -> None:
    def rank() -> Any:
        gathered: list[Any] = [None]
        flow.comm.gather(flow.tensor([1, 2]), gathered)
        exchanged = [flow.zeros(2, dtype=flow.int64)]
        flow.comm.all_to_all(exchanged, [flow.tensor([1, 2])])
        scattered = flow.zeros(2, dtype=flow.int64)
        flow.comm.scatter(scattered, [flow.tensor([1, 2])])
        reduced = flow.tensor([1, 2])
        flow.comm.reduce(reduced, 0)
        return [tensor.tolist() for tensor in (gathered[0], exchanged[0], scattered, reduced)]

    assert run(rank, 1) == [[[1, 2]] * 4]


def gathered_in_a_process() -> Any:
    rank = flow.env.get_rank()
    output = flow.zeros(4, 3, dtype=flow.int64)
    flow.comm.all_gather_into_tensor(output, flow.tensor([[1, 2, 3], [4, 5, 6]]) + 6 * rank)
    entries: list[Any] = [None, None]
    flow.comm.all_gather(entries, flow.tensor([float(rank)], requires_grad=True))
    flow.comm.send(output, 1) if rank == 0 else flow.comm.recv(0, out=output)
    return output.tolist(), [entry.item() for entry in entries]


def test_ranks_that_are_processes(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    monkeypatch.syspath_prepend(pytestconfig.rootpath)  # where the ranks find this module
    found = collshim.launch(gathered_in_a_process, 2, ranks="processes", timeout=90)
    assert found == [([[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]], [0.0, 1.0])] * 2
