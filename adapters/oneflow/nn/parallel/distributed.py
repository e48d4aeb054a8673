"""Data parallel training. Conventions of OneFlow 0.9.0, or of later releases for arguments that 0.9.0 lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from collshim.communicator import Communicator
from collshim.errors import ArgumentTypeError, ArgumentValueError, also
from collshim.oneflow.comm.arguments import argument_error, world_communicator
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
        TypeError: ``module`` is not a module.
        ValueError: ``bucket_size`` is not a positive int.
    """
    if not isinstance(module, torch.nn.Module):
        raise ArgumentTypeError(f"DistributedDataParallel: module is {type(module)}, should be a flow.nn.Module")
    if not isinstance(bucket_size, int) or bucket_size < 1:
        raise also(ArgumentValueError, ValueError)(f"bucket_size is {bucket_size!r}, should be a positive int")
    comm = world_communicator()
    parameters = list(module.parameters())
    _require_alike(parameters)
    if broadcast_parameters:
        _broadcast(comm, parameters)
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    if trained:
        _Gradients(comm, trained, bucket_size if use_bucket else 1)
        module.register_forward_hook(lambda module, inputs, outputs: _join(outputs, trained))
    if broadcast_buffers:
        module.register_forward_pre_hook(lambda module, inputs: _broadcast(comm, list(module.buffers())))
    module._is_ddp_module = True  # type: ignore[assignment]  # OneFlow's programs read this
    return module


def _require_alike(parameters: Sequence[Tensor]) -> None:
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

    def __init__(self, comm: Communicator, trained: Sequence[Tensor], bucket_size: int) -> None:
        self._comm = comm
        latest_first = list(reversed(trained))  # the usual order of gradients in a backward pass
        self._buckets = [latest_first[at : at + bucket_size] for at in range(0, len(latest_first), bucket_size)]
        self._ready: set[int] = set()
        self._posted: list[tuple[list[Tensor], Any]] = []
        for parameter in trained:
            parameter.register_post_accumulate_grad_hook(self._note())

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
    def forward(ctx: Any, count: int, *tensors: Tensor) -> Any:
        """Return copies of the first ``count`` tensors; the others are the parameters."""
        ctx.set_materialize_grads(False)
        ctx.shapes = [(parameter.shape, parameter.dtype, parameter.device) for parameter in tensors[count:]]
        return tuple(tensor.clone() for tensor in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Return the outputs' own gradients, and zeros for the parameters."""
        zeros = [torch.zeros((), dtype=dtype, device=device).expand(shape) for shape, dtype, device in ctx.shapes]
        return (None, *gradients, *zeros)


def _join(outputs: Any, trained: Sequence[Tensor]) -> Any:
    """Connect the tensors in ``outputs`` that require a gradient to all parameters; others stay as they are."""
    leaves, structure = tree_flatten(outputs)
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.requires_grad]
    if not places or not torch.is_grad_enabled():
        return outputs
    join: Any = _Join.apply
    joined = join(len(places), *(plain(leaves[place]) for place in places), *(plain(one) for one in trained))
    for place, tensor in zip(places, joined, strict=True):
        leaves[place] = adopt(tensor)
    return tree_unflatten(leaves, structure)
