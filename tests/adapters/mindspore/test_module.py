"""collshim.mindspore: its names and signatures; ranks that are processes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import collshim
import collshim.mindspore as ms
from collshim.mindspore import communication
from collshim.mindspore.communication import comm_func, create_group, get_rank, init

WORLD = "'hccl_world_group'"
TENSOR = f"(tensor, group={WORLD}, async_op=False)"
OP = f"(tensor, op='sum', group={WORLD}, async_op=False)"
FROM = f"(tensor, src=0, group={WORLD})"
SINGLE = "(output_shape, tensor, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False)"

# As MindSpore 2.10.0 has them.
SIGNATURES = {
    "create_group": "(group, rank_ids, options=None)",
    "destroy_group": "(group)",
    "get_comm_name": f"(group={WORLD})",
    "get_group_rank_from_world_rank": "(world_rank_id, group)",
    "get_group_size": f"(group={WORLD})",
    "get_local_rank": f"(group={WORLD})",
    "get_local_rank_size": f"(group={WORLD})",
    "get_process_group_ranks": f"(group={WORLD})",
    "get_rank": f"(group={WORLD})",
    "get_world_rank_from_group_rank": "(group, group_rank_id)",
    "init": "(backend_name=None)",
    "release": "()",
    "comm_func.P2POp": "(op, tensor, peer, group=None, tag=0, recv_dtype=None)",
    "comm_func.all_gather_into_tensor": TENSOR,
    "comm_func.all_reduce": OP,
    "comm_func.all_to_all_single_with_output_shape": SINGLE,
    "comm_func.all_to_all_v_c": "(output, input, send_count_matrix, group=None, async_op=False)",
    "comm_func.all_to_all_with_output_shape": "(output_shape_list, input_tensor_list, group=None, async_op=False)",
    "comm_func.barrier": f"(group={WORLD})",
    "comm_func.batch_isend_irecv": "(p2p_op_list)",
    "comm_func.broadcast": FROM,
    "comm_func.gather_into_tensor": FROM.replace("src", "dst"),
    "comm_func.irecv": f"(tensor, src=0, group={WORLD}, tag=0)",
    "comm_func.isend": f"(tensor, dst=0, group={WORLD}, tag=0)",
    "comm_func.recv": f"(tensor, src=0, group={WORLD}, tag=0)",
    "comm_func.reduce": f"(tensor, dst, op='sum', group={WORLD})",
    "comm_func.reduce_scatter_tensor": OP,
    "comm_func.scatter_tensor": FROM,
    "comm_func.send": f"(tensor, dst=0, group={WORLD}, tag=0)",
}


def bare(function: Callable[..., Any]) -> str:
    """A signature without annotations."""
    signature = inspect.signature(function)
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return str(inspect.Signature(plain))


@pytest.mark.parametrize("name", SIGNATURES)
def test_every_signature_is_mindspores(name: str) -> None:
    module, _, function = name.rpartition(".")
    assert bare(getattr(comm_func if module else communication, function)) == SIGNATURES[name]


def test_comm_func_offers_these_functions_and_the_handle_and_nothing_else() -> None:
    functions = {name.partition(".")[2] for name in SIGNATURES if "." in name}
    assert set(comm_func.__all__) == functions | {"CommHandle"}


def test_functions_are_also_found_in_management() -> None:
    from collshim.mindspore.communication import management

    assert management.init is communication.init
    assert management.get_rank is communication.get_rank


@pytest.mark.parametrize("name", ["dataset", "train", "Model", "jit"])
def test_a_name_that_is_not_covered_is_an_attribute_error_that_says_what_is(name: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}': of MindSpore, collshim.mindspore covers"):
        getattr(ms, name)
    assert not hasattr(ms, name)


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.0, torch.float32),
        ([1, 2], torch.int64),
        (np.ones(2), torch.float64),
        (np.ones(2, np.int16), torch.int16),
    ],
)
def test_tensor_makes_a_torch_tensor_of_the_datas_dtype(data: Any, dtype: torch.dtype) -> None:
    tensor: Any = ms.Tensor(data)
    assert type(tensor) is ms.Tensor
    assert tensor.dtype is dtype
    assert isinstance(tensor, ms.Tensor)
    assert not isinstance(data, ms.Tensor)


def test_tensor_takes_a_dtype_and_copies() -> None:
    array = np.ones(2, np.float32)
    tensor: Any = ms.Tensor(array, ms.int32)
    same: Any = ms.Tensor(array)
    array[0] = 5
    assert tensor.tolist() == same.tolist() == [1, 1]
    assert tensor.dtype is torch.int32


def gathered_in_a_process() -> Any:
    init("mccl")
    here = get_rank()
    output, _ = comm_func.all_gather_into_tensor(np.ones((2, 1), np.float32) * here)
    later, handle = comm_func.all_reduce(torch.tensor([1.0 + here]), async_op=True)
    assert handle is not None
    handle.wait()
    create_group("turned", [1, 0])
    tensor = torch.tensor([float(here)], requires_grad=True)
    comm_func.broadcast(tensor, 1, "turned").sum().backward()
    assert tensor.grad is not None
    outputs, _ = comm_func.all_to_all_with_output_shape([(1,), (2,)][here : here + 1] * 2, [tensor, tensor.repeat(2)])
    return output.tolist(), later.tolist(), tensor.grad.tolist(), [part.tolist() for part in outputs]


def test_ranks_that_are_processes(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    monkeypatch.syspath_prepend(pytestconfig.rootpath)  # where the ranks find this module
    first, second = collshim.launch(gathered_in_a_process, 2, ranks="processes", timeout=90)
    assert first == ([[0.0], [0.0], [1.0], [1.0]], [3.0], [1.0], [[0.0], [1.0]])
    assert second == ([[0.0], [0.0], [1.0], [1.0]], [3.0], [1.0], [[0.0, 0.0], [1.0, 1.0]])
