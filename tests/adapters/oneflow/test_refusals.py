"""Calls that oneflow.comm refuses, with OneFlow's class and a text that shows the argument."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import collshim.oneflow as flow
from tests.adapters.conftest import Refused, Run

comm: Any = flow.comm  # calls that the types forbid are tested too


def two() -> list[torch.Tensor]:
    return [flow.zeros(2), flow.zeros(2)]


def one_sparse(place: int) -> list[torch.Tensor]:
    found = two()
    found[place] = torch.zeros(2).to_sparse()
    return found


def everywhere() -> Any:
    return flow.zeros(2, placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.broadcast)


def read_only() -> Any:
    array = np.zeros(4, np.float32)
    array.flags.writeable = False
    return array


SIZES = "output tensor size must be equal to world_size times input tensor size"
TYPES = "output tensor must have the same type as input tensor"
LOCAL = "'list' object has no attribute 'is_local'"
KNOWN: dict[str, Any] = {"shape": (2,), "dtype": flow.float32, "device": "cpu"}

REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: comm.all_reduce([1, 2]), AssertionError, "tensor is <class 'list'>, should be a tensor"),
    *(
        (lambda call=call: call(flow.ones(2, requires_grad=True)), RuntimeError, "a leaf Tensor that requires grad")
        for call in (comm.all_reduce, lambda tensor: comm.reduce(tensor, 0))
    ),
    (lambda: comm.reduce(flow.zeros(2), 0.0), AssertionError, "dst is 0.0"),
    *(
        (lambda src=src: comm.broadcast(flow.zeros(2), src), AssertionError, "should be an int")
        for src in (1.0, None, np.int64(0))
    ),
    *(
        (lambda call=call, root=root: call(root), IndexError, f"{root}, should be from 0 to 1")
        for root in (2, -1)
        for call in (
            lambda root: comm.broadcast(flow.zeros(2), root),
            lambda root: comm.scatter(flow.zeros(2), two(), root),
            lambda root: comm.reduce(flow.zeros(2), root),
        )
    ),
    (lambda: comm.all_gather([None], flow.zeros(2)), AssertionError, "length of tensor_list is 1, should be 2"),
    (lambda: comm.all_gather([None] * 3, flow.zeros(2)), AssertionError, "length of tensor_list is 3, should be 2"),
    (lambda: comm.all_gather((None, None), flow.zeros(2)), AssertionError, "tensor_list is <class 'tuple'>, should be"),
    (lambda: comm.all_gather([None, None], two()), AssertionError, "tensor is <class 'list'>, should be a tensor"),
    (lambda: comm.gather(flow.zeros(2), [None]), AssertionError, "length of gather_list is 1, should be 2"),
    (lambda: comm.all_to_all(two(), two()[:1]), AssertionError, "all_to_all"),
    (lambda: comm.all_to_all(tuple(two()), two()), AssertionError, "all_to_all"),
    (lambda: comm.all_to_all(two(), [flow.zeros(2), "x"]), AssertionError, "all_to_all"),
    (lambda: comm.all_to_all([flow.zeros(2), None], two()), AssertionError, "all_to_all"),
    (lambda: comm.all_to_all([None, flow.zeros(2)], two()), AttributeError, "all_to_all"),
    (lambda: comm.all_to_all(two(), [None, flow.zeros(2)]), AttributeError, "all_to_all"),
    (
        lambda: comm.all_to_all(one_sparse(flow.env.get_rank()), two()),
        TypeError,
        "torch.sparse_coo on cpu, should be a dense tensor",
    ),
    (lambda: comm.reduce_scatter(flow.zeros(2), tuple(two())), AssertionError, "input_list is <class 'tuple'>"),
    (lambda: comm.reduce_scatter(flow.zeros(2), two()[:1]), AssertionError, "length of input_list is 1"),
    (lambda: comm.reduce_scatter(flow.zeros(3), two()), AssertionError, "shape of output is (3,)"),
    (lambda: comm.reduce_scatter([0.0], two()), AssertionError, "output is <class 'list'>"),
    (lambda: comm.reduce_scatter(flow.zeros(2), [flow.zeros(2), None]), AttributeError, "input_list[1]"),
    (lambda: comm.reduce_scatter(flow.zeros(2), [flow.zeros(2), flow.tensor([1, 2])]), TypeError, "dtype of input[1]"),
    (lambda: comm.reduce_scatter_tensor(flow.zeros(3), flow.zeros(4)), RuntimeError, SIZES),
    (lambda: comm.reduce_scatter_tensor(flow.zeros(2), flow.arange(4)), RuntimeError, TYPES),
    (lambda: comm.reduce_scatter_tensor(flow.zeros(2), [0.0] * 4), AttributeError, LOCAL),
    (lambda: comm.all_gather_into_tensor(flow.zeros(5), flow.zeros(2, 3)), RuntimeError, SIZES),
    (lambda: comm.all_gather_into_tensor(flow.zeros(5), flow.zeros(2, 3)), RuntimeError, "5 elements (5,)"),
    (lambda: comm.all_gather_into_tensor(flow.zeros(4), flow.arange(2)), RuntimeError, TYPES),
    (lambda: comm.all_gather_into_tensor([1.0], flow.zeros(2)), AttributeError, LOCAL),
    (lambda: comm.all_gather_into_tensor(flow.zeros(4), [1.0]), AttributeError, LOCAL),
    (
        lambda: comm.all_gather_into_tensor(read_only(), flow.ones(2)),
        ValueError,
        "all_gather_into_tensor: output_tensor is a read-only NumPy array",
    ),
    (
        lambda: comm.all_gather_into_tensor(flow.zeros(1).expand(4), flow.ones(2)),
        ValueError,
        "output_tensor is expanded",
    ),
    (lambda: comm.send(flow.zeros(2), 0.0), TypeError, "send(): argument 'dst' must be int64, not <class 'float'>"),
    (lambda: comm.send([1.0], 1), TypeError, "send(): argument 'input'"),
    (lambda: comm.send(flow.zeros(2), flow.env.get_rank()), ValueError, "this rank, should be another rank"),
    *(
        (lambda rank=rank: comm.send(flow.zeros(2), rank), kind, f"{rank}, should be from 0 to 1")
        for kind in (RuntimeError, IndexError)
        for rank in (-1, 2)
    ),
    *(
        (lambda rank=rank: comm.recv(rank, out=flow.zeros(2)), kind, f"{rank}, should be from 0 to 1")
        for kind in (RuntimeError, IndexError)
        for rank in (-1, 2)
    ),
    *(
        (lambda more=more: comm.recv(flow.env.get_rank(), **more), RuntimeError, "this rank, should be another rank")
        for more in ({}, KNOWN)
    ),
    (lambda: comm.recv(flow.zeros(2)), TypeError, "recv(): argument 'src' must be int64, not <class 'collshim.oneflow"),
    *(
        (lambda out=out: comm.recv(0, out=out), TypeError, f"recv(): argument 'out' must be tensor, not {type(out)}")
        for out in (5, "a", [1.0])
    ),
    *(
        (
            lambda given=given: comm.recv(0, **{name: KNOWN[name] for name in given.split()}),
            RuntimeError,
            "shape, dtype and device, or none of them",
        )
        for given in ("shape", "dtype", "device", "shape dtype")
    ),
    *(
        (lambda wrong=wrong: comm.recv(flow.env.get_rank(), **{**KNOWN, **wrong}), TypeError, "should be those of a")
        for wrong in ({"shape": 3}, {"shape": "a"}, {"dtype": "float32"}, {"device": 3})
    ),
    *(
        (lambda call=call: call(everywhere()), AssertionError, "a global tensor, should be a local one")
        for call in (
            comm.all_reduce,
            lambda tensor: comm.broadcast(tensor, 0),
            lambda tensor: comm.all_gather([None, None], tensor),
            lambda tensor: comm.all_gather_into_tensor(flow.zeros(4), tensor),
            lambda tensor: comm.reduce_scatter(flow.zeros(2), [tensor, tensor]),
            lambda tensor: comm.all_to_all([tensor, tensor], two()),
        )
    ),
]


@pytest.mark.parametrize(("call", "theirs", "text"), REFUSED)
def test_invalid_call_is_refused(
    run: Run, refused: Refused, call: Callable[[], Any], theirs: type[Exception], text: str
) -> None:
    for told in run(lambda: refused(theirs, call), 2):
        assert text in told


def test_scatter_refuses_a_wrong_list_before_sending(run: Run, refused: Refused) -> None:
    good = two()
    wrong: list[tuple[type[Exception], Any, str]] = [
        (AssertionError, None, "should be a list"),
        (AssertionError, tuple(good), "should be a list"),
        (AssertionError, good[:1], "length of scatter_list is 1, should be 2"),
        (
            AssertionError,
            [good[0], flow.zeros(3)],
            "invalid tensor size at index 1: oneflow.Size([2]) vs oneflow.Size([3])",
        ),
        (TypeError, one_sparse(0), "torch.sparse_coo on cpu, should be a dense tensor"),
        (RuntimeError, [good[0], flow.arange(2)], "dtype of scatter_list[1] is torch.int64, should be torch.float32"),
    ]

    def rank() -> None:
        tensor, here = flow.ones(2), flow.env.get_rank()
        for kind, scatter_list, text in wrong if here == 0 else []:
            assert text in refused(kind, partial(comm.scatter, tensor, scatter_list))
        comm.scatter(tensor, good if here == 0 else None)
        assert tensor.tolist() == [0.0, 0.0]

    run(rank, 2)


@pytest.mark.parametrize("send_meta", [None, "x", 1.5, np.True_])
def test_non_bool_send_meta_is_refused_before_sending(run: Run, refused: Refused, send_meta: Any) -> None:
    def rank() -> Any:
        if flow.env.get_rank() == 0:
            text = refused(TypeError, lambda: comm.send(flow.tensor([1]), 1, send_meta))
            comm.send(flow.tensor([2]), 1, 1)
            return text
        return comm.recv(0).tolist()

    text, received = run(rank, 2)
    assert f"send(): argument 'send_meta' must be bool, not {type(send_meta)}" in text
    assert received == [2]
