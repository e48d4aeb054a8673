"""Gradients of Send, Receive, NeighborExchange and its second form match recorded values of the real MindSpore.

``tests/over_real/over_mindspore.py`` checks the same on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import collshim.mindspore as ms
from collshim.mindspore import Tensor, ops
from collshim.mindspore.communication import create_group, get_rank
from tests.adapters.conftest import each_of


def own(*shape: int) -> Tensor:
    return Tensor((np.arange(np.prod(shape)).reshape(shape) + 10 * get_rank()).astype(np.float32))


@each_of(2, gives=[[20.0, 22.0], [0.0, 2.0]])
def test_message_returns_its_gradient() -> Any:
    other = 1 - get_rank()
    send, receive = ops.Send(0, other), ops.Receive(0, other, [2], ms.float32)
    there = (lambda x: send(x * 2).sum()) if get_rank() == 0 else (lambda x: (receive(x) * x).sum())
    return ms.grad(there)(own(2)).asnumpy().tolist()


@each_of(3, gives=[None, [20.0, 21.0], [10.0, 11.0]])
def test_gradient_returns_in_a_group_of_its_own() -> Any:
    if get_rank() == 0:
        return None
    create_group("there", [1, 2])
    create_group("back", [1, 2])
    if get_rank() == 1:
        send = ops.Send(0, 1, "there", "back")
        return ms.grad(lambda x: send(x).sum())(own(2)).asnumpy().tolist()
    receive = ops.Receive(0, 0, [2], ms.float32, "there", "back")
    return ms.grad(lambda x: (receive(x) * x).sum())(own(2)).asnumpy().tolist()


@each_of(2, gives=[True, [0.0, 1.0]])
def test_unused_message_returns_no_gradient() -> Any:
    if get_rank() == 0:
        x = own(2)
        return ops.Send(0, 1)(x) is x
    return ms.grad(lambda x: (ops.Receive(0, 0, [2], ms.float32)() * x).sum())(own(2)).asnumpy().tolist()


@each_of(2, gives=[[2.0, 2.0], [1.0, 1.0]])
def test_neighbours_exchange_gradients() -> Any:
    other = [1 - get_rank()]
    exchange = ops.NeighborExchange(other, other, [(2,)], [(2,)], ms.float32)
    return ms.grad(lambda x: (exchange((x,))[0] * (get_rank() + 1)).sum())(own(2)).asnumpy().tolist()


@each_of(
    2,
    gives=[
        ([[0.0, 1.0, 10.0], [2.0, 3.0, 12.0]], [[1.0, 3.0], [1.0, 3.0]]),
        ([[1.0, 10.0, 11.0], [3.0, 12.0, 13.0]], [[3.0, 2.0], [3.0, 2.0]]),
    ],
)
def test_borders_add_gradients_of_neighbours() -> Any:
    ring, lens = [-1] * 8, [0, 0, 0, 0]
    ring[6 if get_rank() else 2], lens[2 if get_rank() else 3] = 1 - get_rank(), 1
    borders = ops.NeighborExchangeV2(ring, lens, ring, lens, "NCHW")
    image = own(1, 1, 2, 2)
    gradient = ms.grad(lambda x: (borders(x) * (get_rank() + 1)).sum())(image)
    return borders(image)[0, 0].asnumpy().tolist(), gradient[0, 0].asnumpy().tolist()
