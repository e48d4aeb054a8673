"""Every collective over NCCL, on one rank that communicates with itself, matches CPU tensors bitwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import collshim
from collshim import Communicator
from collshim.world import local_worlds
from tests.engine.worlds import attempt
from tests.gpu.alone import world_of_one
from tests.gpu.hardware import DEVICE, require_gpu
from tests.gpu.scenarios import ALL, DTYPES, MOVES, NCCL_DTYPES, SUMS, Post, describe, given, reduced, results

require_gpu()


@pytest.fixture(scope="module", params=[False, True], ids=["unchecked", "checked"])
def comm(request: pytest.FixtureRequest) -> Iterator[Communicator]:
    with world_of_one(checks=request.param) as world:
        yield world.communicator


@pytest.fixture(scope="module")
def plain() -> Iterator[Communicator]:
    """Yield the shortcut of a single rank on the CPU, as the reference."""
    with local_worlds(1) as worlds:
        yield worlds[0].communicator


def dtype_names(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def results_by_name(
    scenarios: dict[str, Post], comm: Communicator, dtype: torch.dtype, device: torch.device | str
) -> Any:
    """Return the result or the error of each collective."""
    x, parts = given(dtype, comm, device)
    kind = torch.device(device).type
    found = {
        name: attempt(lambda scenario=scenario: describe(results(scenario(comm, x, parts)), kind))
        for name, scenario in scenarios.items()
    }
    return {name: outcome.text if outcome.raised else outcome.value for name, outcome in found.items()}


def test_nccl_is_used(comm: Communicator) -> None:
    group = comm._transport.data_group  # type: ignore[attr-defined]
    backend = group._get_backend(DEVICE)
    before = backend._get_sequence_number_for_group()
    comm.all_reduce(torch.ones(3, device=DEVICE)).wait()
    assert type(backend).__name__ in ("ProcessGroupNCCL", "PairedNccl")
    assert backend._get_sequence_number_for_group() > before


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_names)
def test_data_moves_unchanged(comm: Communicator, plain: Communicator, dtype: torch.dtype) -> None:
    assert results_by_name(MOVES, comm, dtype, DEVICE) == results_by_name(MOVES, plain, dtype, "cpu")


@pytest.mark.parametrize("dtype", NCCL_DTYPES, ids=dtype_names)
def test_sums_in_every_form(comm: Communicator, plain: Communicator, dtype: torch.dtype) -> None:
    assert results_by_name(SUMS, comm, dtype, DEVICE) == results_by_name(SUMS, plain, dtype, "cpu")


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_names)
def test_every_reduce_operation(comm: Communicator, plain: Communicator, dtype: torch.dtype) -> None:
    found = describe(reduced(comm, *given(dtype, comm, DEVICE), dtype))
    assert found == describe(reduced(plain, *given(dtype, plain, "cpu"), dtype), "cpu")


SHAPES: dict[str, tuple[int, ...]] = {"0-d": (), "empty": (0, 3), "of one element": (1, 1), "large": (1 << 20, 3)}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_arrays_of_every_size(comm: Communicator, shape: tuple[int, ...]) -> None:
    x = torch.full(shape, 3.0, device=DEVICE)
    stack = x[None]
    alike: list[Any] = [comm.all_reduce(x), comm.broadcast(x), comm.scatter(stack), comm.reduce_scatter(stack)]
    stacks: list[Any] = [comm.all_gather(x), comm.gather(x), comm.all_to_all(stack)]
    assert describe(results(alike)) == describe([x] * 4)
    assert describe(results(stacks)) == describe([stack] * 3)


VIEWS: dict[str, Any] = {
    "transposed": lambda x: x.t(),
    "every second": lambda x: x[::2, 1:],
    "expanded": lambda x: x[:1].expand(4, -1),
    "conjugated": lambda x: torch.complex(x, x).conj(),
    "lazily negated": lambda x: torch.complex(x, x).conj().imag,
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_are_read_as_their_numbers(comm: Communicator, view: Any) -> None:
    x = view(torch.arange(12.0, device=DEVICE).view(4, 3))
    assert torch.equal(comm.all_reduce(x).wait(), x)
    assert torch.equal(comm.all_gather(x).wait()[0], x)


def test_strided_output_is_written_in_place(comm: Communicator) -> None:
    whole = torch.zeros(4, 6, device=DEVICE)
    out = whole[::2, ::3]
    found = comm.all_reduce(torch.ones(2, 2, device=DEVICE), out=out).wait()
    assert found is out
    assert whole.sum().item() == 4
    assert out.sum().item() == 4


def test_gloo_serves_cpu_tensors_of_the_same_world(comm: Communicator) -> None:
    on_gpu = comm.all_reduce(torch.full((4,), 2.0, device=DEVICE))
    on_cpu = comm.all_reduce(torch.full((4,), 3.0))
    in_numpy = comm.all_gather(np.full(4, 4.0))
    assert describe(on_cpu.wait(), "cpu") == describe(torch.full((4,), 3.0), "cpu")
    assert in_numpy.wait().tolist() == [[4.0] * 4]
    assert on_gpu.wait().tolist() == [2.0] * 4
    assert comm.all_gather_object({"a": 1}).wait() == [{"a": 1}]


def test_subgroup_has_its_own_nccl(comm: Communicator) -> None:
    part = comm.subgroup([0])
    assert part is not None
    assert part.all_reduce(torch.ones(2, device=DEVICE)).wait().tolist() == [1, 1]
    part.close()
    assert comm.all_reduce(torch.ones(2, device=DEVICE)).wait().tolist() == [1, 1]


def test_default_device_changes_nothing(comm: Communicator) -> None:
    """The engine's own tensors are on the CPU, whatever the user's default device."""
    wanted = results_by_name(ALL, comm, torch.float32, DEVICE)
    with torch.device("cuda"):
        assert results_by_name(ALL, comm, torch.float32, DEVICE) == wanted
        assert comm.all_reduce(np.ones(2)).wait().tolist() == [1, 1]


def test_refused_argument_sends_nothing(comm: Communicator) -> None:
    x = torch.ones(2, device=DEVICE)
    with pytest.raises(collshim.ArgumentValueError, match="device of output is cpu, should be cuda:0"):
        comm.all_reduce(x, out=torch.ones(2))
    assert comm.all_reduce(x).wait().tolist() == [1, 1]


GRADIENTS: dict[str, Any] = {
    "all_reduce": lambda comm, x: comm.all_reduce(x, "avg").wait(),
    "reduce": lambda comm, x: comm.reduce(x, 0).wait(),
    "broadcast": lambda comm, x: comm.broadcast(x, 0).wait(),
    "all_gather": lambda comm, x: comm.all_gather(x).wait(),
    "gather": lambda comm, x: comm.gather(x, 0).wait(),
    "scatter": lambda comm, x: comm.scatter(x[None], 0).wait(),
    "reduce_scatter": lambda comm, x: comm.reduce_scatter(x[None], "max").wait(),
    "all_to_all": lambda comm, x: comm.all_to_all(x[None]).wait(),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_stay_on_the_gpu(comm: Communicator, name: str) -> None:
    x = torch.arange(1.0, 5.0, device=DEVICE, requires_grad=True)
    (GRADIENTS[name](comm, x) ** 2).sum().backward()
    assert x.grad is not None
    assert describe(x.grad) == describe((2 * x).detach())
