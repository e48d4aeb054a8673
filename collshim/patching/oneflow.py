"""The real OneFlow 0.9.0, with its collective operations carried by collshim between ranks.

This replaces the functions of ``oneflow.comm``; the functions of ``oneflow._C`` beneath them that move data between
ranks, which DistributedDataParallel calls; the broadcast of objects; the barrier; and the functions that return ranks.
Tensors, modules, optimizers and everything else remain OneFlow's, which itself sees one process: global tensors and
graphs on several ranks are refused. OneFlow is imported without the launcher's variables, so that it does not connect.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from collshim import world
from collshim.communicator import Communicator
from collshim.errors import ArgumentError, CollshimError, also, refusal
from collshim.patching.replacing import Foreign, Replacing

_LAUNCHERS = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK")
_COMM = (
    *("all_reduce", "all_gather", "all_gather_into_tensor", "all_to_all", "broadcast", "barrier", "gather", "reduce"),
    *("reduce_scatter", "reduce_scatter_tensor", "scatter"),
)
_BENEATH = ("local_all_reduce", "local_reduce", "local_all_gather", "local_reduce_scatter", "comm_broadcast")


def load() -> Foreign:
    """Import OneFlow so that it sees a single process."""
    hidden = {name: os.environ.pop(name) for name in _LAUNCHERS if name in os.environ}
    try:
        return importlib.import_module("oneflow")
    finally:
        for name in _LAUNCHERS:
            os.environ.pop(name, None)  # the import has set them
        os.environ.update(hidden)


def apply(patch: Replacing) -> None:
    """Replace the functions named above."""
    flow = importlib.import_module("oneflow")
    internal, functions = flow._oneflow_internal, importlib.import_module("oneflow.comm.comm_ops")
    carrier = _Carrier(flow)
    for name in _COMM:
        patch.replace_everywhere(getattr(functions, name), getattr(carrier, name))
    for name in (*_BENEATH, "send", "recv"):
        patch.replace_everywhere(getattr(flow._C, name), getattr(carrier, name))
    for name, ask in _RANKS.items():
        patch.replace(internal, name, ask)
    patch.replace(internal, "cpu_broadcast", carrier.cpu_broadcast)
    patch.replace(internal.eager, "ClusterSync", carrier.barrier)
    for name in ("to_global", "local_to_global"):
        patch.replace(flow.Tensor, name, _refuse_between_ranks(f"Tensor.{name}", getattr(flow.Tensor, name)))
    patch.replace(flow.nn.Graph, "__init__", _refuse_between_ranks("nn.Graph", flow.nn.Graph.__init__))


_RANKS: dict[str, Callable[[], int]] = {
    "GetRank": lambda: world.current().rank,
    "GetWorldSize": lambda: world.current().size,
    "GetLocalRank": lambda: world.current().local_rank,
    "GetNodeSize": lambda: -(-world.current().size // world.current().local_size),
}


def _refuse_between_ranks(what: str, own: Callable[..., Foreign]) -> Callable[..., Foreign]:
    """Return a function that calls ``own``, but raises an error in a world of several ranks."""

    def call(*args: Foreign, **kwargs: Foreign) -> Foreign:
        here = world.current()
        if here.size > 1:
            text = f"{what} is not carried between ranks: keep local tensors, and call flow.comm"
            raise also(CollshimError, RuntimeError)(f"{text} (rank {here.rank} of {here.size})")
        return own(*args, **kwargs)

    return call


class _Carrier:
    """OneFlow's functions on top of collshim's communicator, converting through NumPy arrays."""

    def __init__(self, flow: Foreign) -> None:
        self.flow = flow
        self.gathers = _differentiable(flow, self)

    @property
    def comm(self) -> Communicator:
        """The communicator of all ranks."""
        return world.current().communicator

    def put(self, tensor: Foreign, values: Foreign) -> None:
        """Write into the tensor's own memory."""
        with self.flow.no_grad():
            tensor.copy_(np.ascontiguousarray(values).reshape(tuple(tensor.shape)))

    def require(self, function: str, holds: bool, what: str, actual: object, expected: str) -> None:
        """Raise an AssertionError, as OneFlow's functions do, unless the condition holds."""
        if not holds:
            text = refusal(function, what, actual, expected, self.comm.rank, self.comm.size)
            raise also(ArgumentError, AssertionError)(text)

    def _tensors(self, function: str, **tensors: Foreign) -> None:
        for what, value in tensors.items():
            self.require(function, isinstance(value, self.flow.Tensor), what, type(value), "a tensor")

    def _lists(self, function: str, **lists: Foreign) -> None:
        for what, value in lists.items():
            right = isinstance(value, list) and len(value) == self.comm.size
            self.require(function, right, what, f"{type(value)}", "a list with one entry per rank")

    def all_reduce(self, tensor: Foreign) -> None:
        """Sum all ranks' ``tensor`` in place, on every rank."""
        self._tensors("all_reduce", tensor=tensor)
        self._refuse_leaf("all_reduce", tensor)
        self.put(tensor, self.comm.all_reduce(tensor.numpy()).wait())

    def reduce(self, tensor: Foreign, dst: int) -> None:
        """Sum all ranks' ``tensor`` into rank ``dst``'s; the other ranks' tensors do not change."""
        self._tensors("reduce", tensor=tensor)
        self._refuse_leaf("reduce", tensor)
        total = self.comm.reduce(tensor.numpy(), dst).wait()
        if self.comm.rank == dst:
            self.put(tensor, total)

    def _refuse_leaf(self, function: str, tensor: Foreign) -> None:
        if tensor.is_leaf and tensor.requires_grad and self.flow.is_grad_enabled():
            raise also(ArgumentError, RuntimeError)(
                f"{function}: a leaf Tensor that requires grad is being used in an in-place operation"
            )

    def broadcast(self, tensor: Foreign, src: int) -> None:
        """Copy rank ``src``'s ``tensor`` to every rank's."""
        self._tensors("broadcast", tensor=tensor)
        self.put(tensor, self.comm.broadcast(tensor.numpy(), src).wait())

    def all_gather(self, tensor_list: list[Foreign], tensor: Foreign) -> None:
        """Replace the entries of ``tensor_list`` by new tensors with all ranks' values, which carry the gradient."""
        self._lists("all_gather", tensor_list=tensor_list)
        self._tensors("all_gather", tensor=tensor)
        stacked = self.gathers.apply(tensor)
        tensor_list[:] = [stacked[rank] for rank in range(self.comm.size)]

    def gather(self, tensor: Foreign, gather_list: list[Foreign] | None = None, dst: int = 0) -> None:
        """Replace the entries of ``gather_list`` by all ranks' tensors, on every rank that passes a list."""
        self._tensors("gather", tensor=tensor)
        if gather_list is not None:
            self._lists("gather", gather_list=gather_list)
        stacked = self.comm.all_gather(tensor.numpy()).wait()
        if gather_list is not None:
            gather_list[:] = [self.make(part, tensor) for part in stacked]

    def make(self, values: Foreign, like: Foreign) -> Foreign:
        """Make a new tensor on the device of another."""
        return self.flow.tensor(np.ascontiguousarray(values), device=like.device)

    def scatter(self, tensor: Foreign, scatter_list: list[Foreign] | None = None, src: int = 0) -> None:
        """Send rank ``src``'s ``scatter_list[r]`` to rank r's ``tensor``; on ``src`` the two share memory."""
        self._tensors("scatter", tensor=tensor)
        if self.comm.rank != src:
            target = np.array(tensor.numpy())
            self.put(tensor, self.comm.scatter(None, src, out=target).wait())
            return
        self._lists("scatter", scatter_list=scatter_list)
        parts: Sequence[Any] = scatter_list or []
        self.comm.scatter([part.numpy() for part in parts], src).wait()
        tensor.data = parts[src]

    def all_to_all(self, output_tensor_list: list[Foreign], input_tensor_list: list[Foreign]) -> None:
        """Send rank s's ``input_tensor_list[r]`` to rank r's ``output_tensor_list[s]``; if r is s, memory is shared."""
        self._lists("all_to_all", output_tensor_list=output_tensor_list, input_tensor_list=input_tensor_list)
        received = self.comm.all_to_all([part.numpy() for part in input_tensor_list]).wait()
        for rank, output in enumerate(output_tensor_list):
            if rank == self.comm.rank:
                output.data = input_tensor_list[rank]
            else:
                self.put(output, received[rank])

    def barrier(self) -> None:
        """Wait until every rank has called this."""
        self.comm.barrier().wait()

    def reduce_scatter(self, output: Foreign, input_list: list[Foreign]) -> None:
        """Sum all ranks' ``input_list[r]``, and rebind rank r's ``output`` to the result."""
        self._tensors("reduce_scatter", output=output)
        self._lists("reduce_scatter", input_list=input_list)
        total: Any = self.comm.reduce_scatter([part.numpy() for part in input_list]).wait()
        output.data = self.make(total, output)

    def all_gather_into_tensor(self, output_tensor: Foreign, input_tensor: Foreign) -> None:
        """Gather all ranks' ``input_tensor``, concatenated, into every rank's ``output_tensor``."""
        self._counts(output_tensor, input_tensor, output_tensor.numel() == input_tensor.numel() * self.comm.size)
        self.put(output_tensor, self.comm.all_gather(input_tensor.numpy()).wait())

    def reduce_scatter_tensor(self, output_tensor: Foreign, input_tensor: Foreign) -> None:
        """Sum all ranks' ``input_tensor``, and write the r-th part to rank r's ``output_tensor``."""
        self._counts(output_tensor, input_tensor, output_tensor.numel() * self.comm.size == input_tensor.numel())
        whole = input_tensor.numpy().reshape(self.comm.size, *output_tensor.shape)
        self.put(output_tensor, self.comm.reduce_scatter(whole).wait())

    def _counts(self, output: Foreign, source: Foreign, fits: bool) -> None:
        if not fits:
            text = "output tensor size must be equal to world_size times input tensor size"
            raise also(ArgumentError, RuntimeError)(f"{text}: {tuple(output.shape)} and {tuple(source.shape)}")
        if output.dtype != source.dtype:
            raise also(ArgumentError, RuntimeError)("output tensor must have the same type as input tensor")

    local_all_gather = all_gather_into_tensor
    local_reduce_scatter = reduce_scatter_tensor

    def _on(self, call: Callable[..., None], tensor: Foreign, inplace: bool, *args: Foreign) -> Foreign:
        target = tensor if inplace else tensor.detach().clone()
        with self.flow.no_grad():
            call(target, *args)
        return target

    def local_all_reduce(self, x: Foreign, inplace: bool = False) -> Foreign:
        """Return the sum of all ranks' ``x`` on every rank: a new tensor, or ``x`` itself if ``inplace``."""
        return self._on(self.all_reduce, x, inplace)

    def local_reduce(self, x: Foreign, *, dst: int = 0, inplace: bool = False) -> Foreign:
        """Return the sum of all ranks' ``x`` on rank ``dst``, and the values of ``x`` on the others."""
        return self._on(self.reduce, x, inplace, dst)

    def comm_broadcast(self, inputs: Foreign, *, src_rank: int = 0, inplace: bool = False) -> Foreign:
        """Return rank ``src_rank``'s tensor or tensors on every rank."""
        if isinstance(inputs, self.flow.Tensor):
            return self._on(self.broadcast, inputs, inplace, src_rank)
        return tuple(self._on(self.broadcast, one, inplace, src_rank) for one in inputs)

    def send(self, input: Foreign, dst: int, send_meta: bool = True) -> None:
        """Send ``input`` to rank ``dst``, whose next ``recv`` from this rank receives it."""
        if not isinstance(input, self.flow.Tensor):
            raise also(ArgumentError, TypeError)(f"send(): argument 'input' must be tensor, not {type(input)}")
        self.comm.send(input.numpy(), dst, discovers=send_meta).wait()

    def recv(
        self, src: int, shape: Foreign = None, dtype: Foreign = None, device: Foreign = None, *, out: Foreign = None
    ) -> Foreign:
        """Return the next message from rank ``src`` to this rank, written to ``out`` if that is passed."""
        given = sum(value is not None for value in (shape, dtype, device))
        if given in (1, 2):
            raise also(ArgumentError, NotImplementedError)("All or none of shape, dtype and device should have value.")
        target = out if out is not None or shape is None else self.flow.empty(*shape, dtype=dtype, device=device)
        if target is None:
            received = self.comm.recv(src, discovers=True).wait()
            return self.flow.tensor(received.numpy())
        values = np.array(target.numpy())
        self.put(target, self.comm.recv(src, out=values, discovers=shape is None).wait())
        return target

    def cpu_broadcast(self, data: bytes | None, src: int) -> Foreign:
        """Return rank ``src``'s bytes on every rank."""
        return self.comm.broadcast_object(data, src).wait()


def _differentiable(flow: Foreign, carrier: _Carrier) -> Foreign:
    """Return a function that stacks all ranks' tensors; the gradient is that of the sum of all ranks' losses."""

    def forward(ctx: Foreign, tensor: Foreign) -> Foreign:
        return carrier.make(carrier.comm.all_gather(tensor.numpy()).wait(), tensor)

    def backward(ctx: Foreign, gradient: Foreign) -> Foreign:
        return carrier.make(carrier.comm.reduce_scatter(gradient.numpy()).wait(), gradient)

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Gathers", (flow.autograd.Function,), members)
