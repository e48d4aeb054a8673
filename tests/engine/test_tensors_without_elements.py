"""Tensors without some or all elements in memory: refused before anything is sent, and the next call is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch._C._functorch import _add_batch_dim
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._functional_collectives import AsyncCollectiveTensor

from collshim import Communicator
from tests.engine.worlds import attempt, on_ranks, world

SHAPE = (4, 3)


def nested() -> Any:
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(1)])


def freed() -> Any:
    tensor = torch.ones(SHAPE)
    tensor.untyped_storage().resize_(0)
    return tensor


def half_freed() -> Any:
    tensor = torch.ones(SHAPE)
    tensor.untyped_storage().resize_(8)
    return tensor


def fake() -> Any:
    with FakeTensorMode():
        return torch.ones(SHAPE)


def masked() -> Any:
    return np.ma.masked_array(np.ones(SHAPE, np.float32), np.zeros(SHAPE, bool))


def inference() -> Tensor:
    with torch.inference_mode():
        return torch.ones(SHAPE)


class Wrapper(Tensor):
    """A tensor that overrides operations, like quantized weights of libraries; its memory is another tensor's."""

    @staticmethod
    def __new__(cls: Any) -> Wrapper:
        wrapper: Wrapper = Tensor._make_wrapper_subclass(cls, SHAPE)
        return wrapper

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        raise NotImplementedError


def jagged() -> Any:
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(1)], layout=torch.jagged)


def quantized() -> Any:
    return torch.quantize_per_tensor(torch.ones(SHAPE), 0.1, 0, torch.quint8)


def compressed() -> Any:
    return torch.ones(SHAPE).to_sparse_csr()


MAKERS: dict[str, Callable[[], Any]] = {
    "nested": nested,
    "jagged": jagged,
    "sparse": lambda: torch.ones(SHAPE).to_sparse(),
    "compressed": compressed,
    "MKLDNN": lambda: torch.ones(SHAPE).to_mkldnn(),
    "quantized": quantized,
    "freed": freed,
    "half freed": half_freed,
    "fake": fake,
    "meta": lambda: torch.ones(SHAPE, device="meta"),
    "masked": masked,
    "wrapper": Wrapper,
    "uninitialized": torch.nn.UninitializedParameter,
    "of vmap": lambda: _add_batch_dim(torch.ones(2, *SHAPE), 0, 1),
    "of functionalize": lambda: torch._to_functional_tensor(torch.ones(SHAPE)),
}


def exchanged(comm: Communicator, array: Any) -> Any:
    sent = comm.send(array, 1 - comm.rank)
    return comm.recv(1 - comm.rank, out=torch.empty(SHAPE)).wait(), sent.wait()


CALLS: dict[str, Callable[[Communicator, Any], Any]] = {
    "all_reduce": lambda comm, array: comm.all_reduce(array).wait(),
    "in place": lambda comm, array: comm.all_reduce(array, out=array).wait(),
    "out": lambda comm, array: comm.all_reduce(torch.ones(SHAPE), out=array).wait(),
    "listed": lambda comm, array: comm.reduce_scatter([array] * comm.size).wait(),
    "gathered": lambda comm, array: comm.all_gather(array, out=[torch.ones(SHAPE), array]).wait(),
    "exchanged": exchanged,
}


def refused(recalled: bool) -> Any:
    comm = world()
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    if recalled:
        for call in CALLS.values():
            call(comm, torch.ones(SHAPE))
    for name, make in MAKERS.items():
        if name == "half freed" and recalled:
            continue  # torch itself reads past the end of such memory
        array = make()
        found |= {(name, form): attempt(call, comm, array).raised for form, call in CALLS.items()}
    inferred = inference()
    found["inference", "out"] = attempt(lambda: comm.all_reduce(torch.ones(SHAPE), out=inferred)).raised
    return found, comm.all_reduce(torch.ones(2)).wait().tolist()


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # torch's, about such tensors
@pytest.mark.parametrize("recalled", [False, True])
def test_empty_storage_is_refused_and_calls_continue(transport: str, recalled: bool) -> None:
    """Refused also after calls of the same form with dense tensors, which another check recognizes."""
    for found, total in on_ranks(refused, 2, transport, recalled):
        assert {call: raised for call, raised in found.items() if "ArgumentError" not in raised} == {}
        assert total == [2.0, 2.0]


def test_memory_freed_after_a_call_is_refused_next(transport: str) -> None:
    assert on_ranks(reduced_then_freed, 2, transport) == [("ArgumentTypeError", [2.0])] * 2


def reduced_then_freed() -> Any:
    comm, tensor = world(), torch.ones(SHAPE)
    for _ in range(2):
        comm.all_reduce(tensor, out=tensor).wait()
    tensor.untyped_storage().resize_(0)
    raised = attempt(lambda: comm.all_reduce(tensor, out=tensor)).raised[0]
    return raised, comm.all_reduce(torch.ones(1)).wait().tolist()


def zeros_read_and_written() -> Any:
    comm, zeros = world(), torch._efficientzerotensor(SHAPE)
    total = comm.all_reduce(zeros).wait().tolist()
    return total, attempt(lambda: comm.all_reduce(torch.ones(SHAPE), out=zeros)).raised[0]


def test_autograd_zeros_are_read_but_not_written(transport: str) -> None:
    zeros = torch.zeros(SHAPE).tolist()
    assert on_ranks(zeros_read_and_written, 2, transport) == [(zeros, "ArgumentValueError")] * 2


def waited() -> Any:
    comm, result = world(), AsyncCollectiveTensor(torch.ones(2))
    return comm.all_reduce(result).wait().tolist(), comm.all_reduce(result, out=result).wait().tolist(), result.tolist()


def test_functional_collective_results_are_waited_for(transport: str) -> None:
    assert on_ranks(waited, 2, transport) == [([2.0, 2.0],) * 3] * 2
