"""Calls of the groups of ``tf.raw_ops`` that have keys. Source: TensorFlow 2.21."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.raw_ops import arguments, exchange
from collshim.tensorflow.raw_ops.exchange import Request
from collshim.tensorflow.raw_ops.groups import KeyedGroup, group_of
from collshim.tensorflow.tensor import adopt, dtype_name


class KeyedCall:
    """The arguments that calls of the groups with keys share.

    Attributes:
        size: the group's size.
    """

    def __init__(self, op: str, number: Any, size: Any, key: Any, instance: Any, hint: Any, seconds: Any) -> None:
        self._op = op
        arguments.require_hint(op, hint)
        self._timeout = arguments.seconds_of(op, seconds)
        self.size = number(op, "group_size", size)
        self._key = number(op, "group_key", key)
        self._instance = str(number(op, "instance_key", instance))
        arguments.require_size(op, self.size)

    def group(self) -> KeyedGroup:
        """Return this member's end of the group."""
        return group_of(self._op, self._key, self.size)

    def run(self, request: Request, act: Any) -> Any:
        """Compare the members' requests, and return the result of ``act``."""
        whole = request._replace(group_key=self._key, instance=self._instance)
        return exchange.run(self._op, self.group(), whole, act, self._timeout)

    def reduce(self, value: Any, merge_op: Any, final_op: Any) -> Any:
        """Return the reduction of the members' tensors."""
        tensor = arguments.tensor_of(self._op, value, arguments.REDUCED)
        merge = arguments.choice_of(self._op, "merge_op", merge_op, list(arguments.MERGE_OPS))
        final = arguments.choice_of(self._op, "final_op", final_op, arguments.FINAL_OPS)
        request = request_of("reduce", tensor)._replace(reduction=f"{merge} and {final}")
        action = partial(
            exchange.reduced, tensor=data_of(tensor), op=arguments.MERGE_OPS[merge], divides=final == "Div"
        )
        return arguments.without_gradient(self._op, tensor, self.run(request, action))

    def gather(self, value: Any) -> Any:
        """Return the members' tensors, concatenated."""
        tensor = arguments.tensor_of(self._op, value, arguments.GATHERED)
        if tensor.dim() == 0:  # TensorFlow ends the process in V2
            raise invalid_argument(f"{self._op}: input should have rank > 0, received 0")
        result = self.run(request_of("gather", tensor), partial(exchange.gathered, tensor=data_of(tensor)))
        return arguments.without_gradient(self._op, tensor, result)

    def all_to_all(self, value: Any) -> Any:
        """Return the members' rows for this one."""
        tensor = arguments.tensor_of(self._op, value, arguments.REDUCED)
        act = partial(exchange.exchanged, tensor=data_of(tensor), op=self._op)
        return arguments.without_gradient(self._op, tensor, self.run(request_of("all_to_all", tensor), act))

    def send(self, value: Any, stated: tuple[int, ...] | None) -> Any:
        """Send a tensor to the other members; ``stated`` is the shape that the caller says it has."""
        tensor = arguments.tensor_of(self._op, value, arguments.BROADCAST)
        request = request_of("broadcast", tensor)._replace(value=1)
        request = request if stated is None else request._replace(shape=stated)
        result = self.run(request, partial(exchange.broadcast, tensor=data_of(tensor), op=self._op))
        return arguments.without_gradient(self._op, tensor, result)

    def receive(self, dtype: Any, shape: tuple[int, ...]) -> Any:
        """Return the tensor of the member that sends."""
        tensor = torch.empty(shape, dtype=arguments.dtype_of(self._op, dtype, arguments.BROADCAST))
        act = partial(exchange.broadcast, tensor=tensor, op=self._op)
        return adopt(self.run(request_of("broadcast", tensor), act))


def data_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor as the engine sends it: it takes no part in the graph."""
    return tensor.detach()


def request_of(kind: str, tensor: torch.Tensor) -> Request:
    """Return what a member tells the others about its tensor."""
    return Request(kind, 0, "", dtype_name(tensor.dtype), shape=tuple(tensor.shape))
