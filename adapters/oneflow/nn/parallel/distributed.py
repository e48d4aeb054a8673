"""Data parallel training. Conventions of OneFlow 0.9.0, or of later releases for arguments that 0.9.0 lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from collshim import world
from collshim.communicator import Communicator
from collshim.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, CollshimError, also
from collshim.oneflow.comm.arguments import argument_error, world_communicator
from collshim.oneflow.framework.calls import is_global
from collshim.oneflow.framework.tensor import adopt, plain


def DistributedDataParallel(
    module: torch.nn.Module,
    *,
    broadcast_buffers: bool = True,
    broadcast_parameters: bool = True,
    bucket_size: int = 10,
    use_bucket: bool = True,
) -> Any:
    """Return ``module`` itself; from now on, its gradients after each backward pass are the mean over all ranks.

    Every rank calls this with a module that has the same parameters. All ranks hold rank 0's values afterwards. If a
    rank's forward pass does not use a parameter, the parameter's gradient there counts as zeros; its ``grad`` is never
    None after a backward pass. Ranks may use parameters in different orders. Gradients add up over several backward
    passes, as they do without this function. Outputs may be a tensor, or tensors in tuples, lists and dictionaries,
    nested in any way; outputs that require no gradient still require none.

    Args:
        module: a module whose parameters are float32 and on one device.
        broadcast_buffers: whether rank 0's buffers are broadcast to all ranks at the start of each forward.
        broadcast_parameters: whether rank 0's parameters are broadcast; if not, all ranks must already have the same
            ones.
        bucket_size: the number of gradients in one all_reduce.
        use_bucket: False means a ``bucket_size`` of 1; from releases after 0.9.0.

    Raises:
        AssertionError: a parameter is not float32, or the parameters are not on one device.
        AttributeError: ``module`` is not a module.
        TypeError: ``bucket_size`` is not an int.
        ValueError: ``bucket_size`` is not positive.
        RuntimeError: a parameter is a global tensor. In a backward pass: a parameter that was frozen after this call
            keeps the gradients in its bucket from being averaged (OneFlow leaves each rank its own).
    """
    if not isinstance(module, torch.nn.Module):
        text = f"DistributedDataParallel: module is {type(module)}, should be a flow.nn.Module"
        raise also(ArgumentError, AttributeError)(text)
    if not isinstance(bucket_size, int):
        raise ArgumentTypeError(f"bucket_size is {bucket_size!r}, should be a positive int")
    if bucket_size < 1:
        raise also(ArgumentValueError, ValueError)(f"bucket_size is {bucket_size!r}, should be a positive int")
    comm = world_communicator()
    parameters = list(module.parameters())
    _require_alike(parameters)
    if broadcast_parameters:
        _broadcast(comm, parameters)
    trained = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
    if trained:
        averaged = _Gradients(comm, trained, bucket_size if use_bucket else 1)
        module.register_forward_hook(lambda module, inputs, outputs: averaged.join(outputs))
    if broadcast_buffers:
        module.register_forward_pre_hook(lambda module, inputs: _broadcast(comm, list(module.buffers())))
    module._is_ddp_module = True  # type: ignore[assignment]  # OneFlow's programs read this
    return module


def _require_alike(parameters: Sequence[Tensor]) -> None:
    if any(is_global(parameter) for parameter in parameters):
        what = "a parameter of the module"
        raise argument_error(RuntimeError, "DistributedDataParallel", what, "a global tensor", "a local one")
    dtypes = sorted({str(parameter.dtype) for parameter in parameters})
    if dtypes not in ([], ["torch.float32"]):
        what = "dtype of the module's parameters"
        raise argument_error(AssertionError, "DistributedDataParallel", what, ", ".join(dtypes), "oneflow.float32")
    places = sorted({str(parameter.device) for parameter in parameters})
    if len(places) > 1:
        what = "device of the module's parameters"
        raise argument_error(AssertionError, "DistributedDataParallel", what, ", ".join(places), "one device")


def _broadcast(comm: Communicator, tensors: Sequence[Tensor]) -> None:
    """Broadcast rank 0's values into the memory of every rank's tensors."""
    if tensors:
        targets = [plain(tensor.detach()) for tensor in tensors]
        comm.broadcast_coalesced(targets, out=targets).wait()


class _Gradients:
    """The gradients of one module, averaged in buckets; every rank posts complete buckets in the same order."""

    def __init__(self, comm: Communicator, trained: Mapping[str, Tensor], bucket_size: int) -> None:
        self._comm, self._trained = comm, trained
        latest_first = [*trained.values()][::-1]  # the usual order of gradients in a backward pass
        self._buckets = [latest_first[at : at + bucket_size] for at in range(0, len(latest_first), bucket_size)]
        self._ready: set[int] = set()
        self._posted: list[tuple[list[Tensor], Any]] = []
        for parameter in trained.values():
            parameter.register_post_accumulate_grad_hook(self._note())

    def join(self, outputs: Any) -> Any:
        """Connect the tensors in ``outputs`` that require a gradient to all parameters; others stay as they are."""
        leaves, structure = tree_flatten(outputs)
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.requires_grad]
        if not places or not torch.is_grad_enabled():
            return outputs
        tensors = [plain(tensor) for tensor in (*(leaves[place] for place in places), *self._trained.values())]
        joined = cast(Any, _Join.apply)(self._begin, len(places), *tensors)
        for place, tensor in zip(places, joined, strict=True):
            leaves[place] = adopt(tensor)
        return tree_unflatten(leaves, structure)

    def _begin(self) -> None:
        """Begin a backward pass from the outputs; gradients of passes from elsewhere do not count as ready."""
        self._finish()
        torch.autograd.Variable._execution_engine.queue_callback(self._end)

    def _end(self) -> None:
        """Write the buckets that are complete; refuse gradients whose bucket is not."""
        late = [entry for bucket in self._buckets[len(self._posted) :] for entry in bucket]
        ready = self._ready & {id(entry) for entry in late}
        missing = [name for name, entry in self._trained.items() if id(entry) not in self._ready]
        self._finish()
        if ready:
            what = f"backward: {', '.join(missing)} had a gradient when DistributedDataParallel was called"
            text = (
                f"{what}, and have none now, so {len(ready)} other gradients are not averaged: freeze parameters first"
            )
            raise also(CollshimError, RuntimeError)(text + world.place())

    def _note(self) -> Callable[[Tensor], None]:
        """Return a hook that records that a parameter's gradient is ready, and posts complete buckets."""

        def note(parameter: Tensor) -> None:
            self._ready.add(id(parameter))
            while len(self._posted) < len(self._buckets):
                bucket = self._buckets[len(self._posted)]
                if not all(id(entry) in self._ready for entry in bucket):
                    return
                self._post(bucket)
            self._finish()

        return note

    def _post(self, bucket: list[Tensor]) -> None:
        with torch.no_grad():
            gradients = [plain(parameter.grad) for parameter in bucket]
            flat = torch.cat([gradient.reshape(-1) for gradient in gradients]).mul_(1 / self._comm.size)
            self._posted.append((gradients, self._comm.all_reduce(flat, out=flat)))

    def _finish(self) -> None:
        """Write the mean to every gradient, and reset for the next backward."""
        posted, self._posted, self._ready = self._posted, [], set()
        with torch.no_grad():
            for gradients, work in posted:
                means = work.wait().split([gradient.numel() for gradient in gradients])
                for gradient, mean in zip(gradients, means, strict=True):
                    gradient.copy_(mean.view_as(gradient))


class _Join(torch.autograd.Function):
    """Copies outputs; its backward passes zeros to every parameter, so that unused ones have a gradient too."""

    @staticmethod
    def forward(ctx: Any, begin: Callable[[], None], count: int, *tensors: Tensor) -> Any:
        """Return copies of the first ``count`` tensors; the others are the parameters.

        The backward pass calls ``begin`` first.
        """
        ctx.begin = begin
        ctx.set_materialize_grads(False)
        ctx.shapes = [(parameter.shape, parameter.dtype, parameter.device) for parameter in tensors[count:]]
        return tuple(tensor.clone() for tensor in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Return the outputs' own gradients, and zeros for the parameters."""
        ctx.begin()
        zeros = [torch.zeros((), dtype=dtype, device=device).expand(shape) for shape, dtype, device in ctx.shapes]
        return (None, None, *gradients, *zeros)
