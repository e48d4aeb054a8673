"""fully_shard: one mesh and a hybrid one, and distributed checkpoints: sharded, full, and asynchronous."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, cast

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint import state_dict as states
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy
from torch.distributed.fsdp import fully_shard as shard

from tests.upstream.programs.ranks import run_named
from tests.upstream.programs.training import own_batch, small_model, train, trained_alone


def _sharded(**options: Any) -> nn.Sequential:
    model = small_model()
    for layer in model:
        if isinstance(layer, nn.Linear):
            shard(layer, **options)
    shard(model, **options)
    return model


def _trained(rank: int, size: int, **options: Any) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = _sharded(**options)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    train(model, optimizer, [own_batch(step, rank, size) for step in range(3)])
    return model, optimizer


def _sums(model: nn.Module, size: int | None) -> dict[str, float]:
    """Return the sums of the whole parameters; compare with one process's, if ``size`` is given."""
    whole = {name: tensor.full_tensor() for name, tensor in model.state_dict().items()}
    wanted = {} if size is None else trained_alone(size, optimizer=torch.optim.Adam).state_dict()
    for name, tensor in wanted.items():
        torch.testing.assert_close(whole[name], tensor, atol=1e-3, rtol=1e-3)
    return {name: float(tensor.double().sum()) for name, tensor in whole.items()}


def _folder(rank: int) -> str:
    """Return a folder that all ranks know."""
    names = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(names)
    return str(names[0])


def one_mesh(rank: int, size: int) -> object:
    return _sums(_trained(rank, size)[0], size)


def hybrid(rank: int, size: int) -> object:
    """Replicate over the first dimension of the mesh, and shard over the second."""
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("replicate", "shard"))
    return _sums(_trained(rank, size, mesh=mesh)[0], size)


def kept_gathered(rank: int, size: int) -> object:
    return _sums(_trained(rank, size, reshard_after_forward=False)[0], size)


def mixed_precision(rank: int, size: int) -> object:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    return {name: round(value, 1) for name, value in _sums(_trained(rank, size, mp_policy=policy)[0], None).items()}


def offloaded(rank: int, size: int) -> object:
    return _sums(_trained(rank, size, offload_policy=CPUOffloadPolicy(pin_memory=False))[0], size)


def clipped(rank: int, size: int) -> object:
    model = _sharded()
    inputs, targets = own_batch(0, rank, size)
    nn.functional.mse_loss(model(inputs), targets).backward()
    return cast(Any, nn.utils.clip_grad_norm_(model.parameters(), 0.1)).full_tensor()


def _saved(rank: int, size: int, save: Callable[..., object]) -> object:
    """Save a trained model with its optimizer, and load both into others."""
    model, optimizer = _trained(rank, size)
    folder = _folder(rank)
    state = dict(zip(("model", "optimizer"), states.get_state_dict(model, optimizer), strict=True))
    save(state, checkpoint_id=folder)
    dist.barrier()
    other = _sharded()
    steps = torch.optim.Adam(other.parameters(), lr=0.1)
    target: dict[str, Any] = dict(zip(("model", "optimizer"), states.get_state_dict(other, steps), strict=True))
    dcp.load(target, checkpoint_id=folder)
    states.set_state_dict(other, steps, model_state_dict=target["model"], optim_state_dict=target["optimizer"])
    more = [own_batch(step, rank, size) for step in (3, 4)]
    losses = train(other, steps, more)
    assert losses == train(model, optimizer, more)
    return {"losses": losses, "files": len(os.listdir(folder)), "sums": _sums(other, None)}


def checkpoint(rank: int, size: int) -> object:
    return _saved(rank, size, dcp.save)


def async_checkpoint(rank: int, size: int) -> object:
    """Save in a thread, with collectives of the default group."""
    return _saved(rank, size, lambda *args, **options: cast(Future[object], dcp.async_save(*args, **options)).result())


def async_process(rank: int, size: int) -> object:
    """Save in another process of each rank."""
    kind = dcp.state_dict_saver.AsyncCheckpointerType.PROCESS
    save = functools.partial(dcp.async_save, async_checkpointer_type=kind)
    return _saved(rank, size, lambda *args, **options: cast(Future[object], save(*args, **options)).result())


def full_state(rank: int, size: int) -> object:
    """Gather the model's state on rank 0 and send it from there; gather the optimizer's on every rank."""
    model, optimizer = _trained(rank, size)
    gathered = states.StateDictOptions(full_state_dict=True, cpu_offload=True)
    whole = states.get_model_state_dict(model, options=gathered)
    assert bool(whole) == (rank == 0)
    other = _sharded()
    sent = states.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    states.set_model_state_dict(other, whole, options=sent)
    full = states.StateDictOptions(full_state_dict=True)
    steps = torch.optim.Adam(other.parameters(), lr=0.1)
    of_optimizer = states.get_optimizer_state_dict(model, optimizer, options=full)
    states.set_optimizer_state_dict(other, steps, of_optimizer, options=full)
    losses = train(other, steps, [own_batch(3, rank, size)])
    assert losses == train(model, optimizer, [own_batch(3, rank, size)])
    return {"sums": _sums(other, None), "losses": losses}


USES: dict[str, Callable[[int, int], object]] = {
    "one-mesh": one_mesh,
    "hybrid": hybrid,
    "kept-gathered": kept_gathered,
    "mixed-precision": mixed_precision,
    "offloaded": offloaded,
    "clipped": clipped,
    "checkpoint": checkpoint,
    "async-checkpoint": async_checkpoint,
    "async-process": async_process,
    "full-state": full_state,
}


if __name__ == "__main__":
    run_named(USES)
