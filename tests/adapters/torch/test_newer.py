"""Additions of torch 2.14 and 2.15: gather_single, gather_into_tensor, set_timeout, get_backend_impl, weights_only."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from datetime import timedelta
from importlib.metadata import entry_points
from typing import Any

import pytest
import torch

import collshim.torch.distributed as dist
from tests.adapters.conftest import Refused, Run, each_of


def own() -> torch.Tensor:
    return torch.full((2, 3), float(dist.get_rank()))


@pytest.mark.parametrize("shape", [(3, 2, 3), (6, 3), (18,)])
@pytest.mark.parametrize("async_op", [False, True])
@each_of(3, gives=[None, [0.0, 1.0, 2.0], None])
def test_gather_single_accepts_any_output_shape(shape: tuple[int, ...], async_op: bool) -> Any:
    whole = torch.zeros(shape) if dist.get_rank() == 1 else None
    work = dist.gather_single(own(), whole, group_dst=1, async_op=async_op)
    assert work is None or work.wait()
    return None if whole is None else whole.flatten()[::6].tolist()


@each_of(2, gives=[[0.0, 1.0], [0.0, 0.0]])
def test_alias_gathers_on_global_rank_0_by_default() -> Any:
    whole = torch.zeros(2, 2, 3)
    dist.gather_into_tensor(own(), whole)
    return whole[:, 0, 0].tolist()


# Mistakes on the destination, and the errors raised there before anything is sent.
WRONG: dict[str, tuple[type[Exception], Any, str]] = {
    "none": (ValueError, None, "gather_tensor must be specified on the destination rank"),
    "size": (RuntimeError, torch.zeros(5), "has 5 elements, should have 12"),
    "strides": (RuntimeError, torch.zeros(4, 6)[:, ::2], "is not contiguous"),
    "dtype": (ValueError, torch.zeros(12, dtype=torch.int64), "dtype"),
    "list": (TypeError, [torch.zeros(2, 3)], "gather_tensor"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mismatched_output_is_refused_at_the_destination(run: Run, refused: Refused, name: str) -> None:
    kind, whole, text = WRONG[name]

    def rank() -> Any:
        if dist.get_rank() == 0:
            with pytest.raises(kind, match=text):
                dist.gather_single(own(), whole)
        right = torch.zeros(12)
        dist.gather_single(own(), right if dist.get_rank() == 0 else None)
        return right.sum().item()

    assert run(rank, 2) == [6.0, 0.0]


@pytest.mark.parametrize("name", ["set_timeout", "_set_pg_timeout"])
def test_group_timeout_applies_from_when_it_was_set(run: Run, name: str) -> None:
    told = threading.Event()

    def rank() -> None:
        group = dist.new_group([0, 1])
        getattr(dist.distributed_c10d, name)(timedelta(seconds=0.2), group)
        if dist.get_rank() == 0:
            with pytest.raises(RuntimeError, match="Timed out waiting 200ms"):
                dist.all_reduce(torch.ones(1), group=group)
            told.set()
        assert told.wait(30)

    run(rank, 2)


class Mine:
    """A class that ``torch.load(weights_only=True)`` does not make."""


def exchanged(value: Any, **there: bool) -> Any:
    """Return the objects that every object function receives from the other of two ranks."""
    me = dist.get_rank()
    every: list[Any] = [None, None]
    dist.all_gather_object(every, value, **there)
    got = [every[1 - me]]
    dist.gather_object(value, every if me == 0 else None, **there)
    got += every[1:] if me == 0 else [every[0]]
    held = [value, value]
    dist.broadcast_object_list(held, src=1, **there)
    part: list[Any] = [None]
    dist.scatter_object_list(part, [value, value] if me == 0 else None, **there)
    if me == 0:
        dist.send_object_list([value], dst=1, **there)
        return [*got, *held, *part]
    message: list[Any] = [None]
    dist.recv_object_list(message, src=0, **there)
    return [*got, *held, *part, *message]


@each_of(2, gives=[[([0, 1, 2], (1, "a"))] * 5, [([0, 1, 2], (1, "a"))] * 6])
def test_weights_only_moves_tensors_and_containers() -> Any:
    got = exchanged({"w": torch.arange(3), "n": (1, "a")}, weights_only=True)
    return [(one["w"].tolist(), one["n"]) for one in got]


def test_weights_only_refuses_a_class_of_the_sender(run: Run, refused: Refused) -> None:
    run(lambda: refused(pickle.UnpicklingError, lambda: dist.all_gather_object([0, 0], Mine(), weights_only=True)), 2)


@each_of(2, gives=[2, 2])
def test_weights_only_refuses_unsavable_objects_before_sending(refused: Refused) -> int:
    every = [0, 0]
    refused(Exception, lambda: dist.all_gather_object(every, lambda: 1, weights_only=True))
    dist.all_gather_object(every, 1, weights_only=True)
    return sum(every)


@pytest.mark.ranks(2)
def test_weights_only_disagreement_is_reported(refused: Refused) -> None:
    given = dist.get_rank() == 0
    refused(RuntimeError, lambda: dist.all_gather_object([0, 0], 1, weights_only=given), "weights_only is")


@pytest.mark.ranks(2)
def test_group_backend_has_a_method_per_collective() -> None:
    x, group = own(), dist.new_group([0, 1])
    assert isinstance(group, dist.ProcessGroup)
    dist.get_backend_impl(group.group_name).allreduce([x]).wait()
    assert (x[0, 0].item(), dist.get_backend_impl() is dist.group.WORLD) == (1.0, True)


def test_unknown_group_has_no_backend(run: Run, refused: Refused) -> None:
    run(lambda: refused(ValueError, lambda: dist.get_backend_impl("nobody's"), "nobody's"), 2)


def test_torch_finds_the_backend_by_entry_point() -> None:
    registers = next(iter(entry_points(group="torch.distributed.backends", name="collshim"))).load()
    registers()
    assert "collshim" in torch.distributed.Backend.backend_list


UNIMPORTED = """
import sys
import torch.distributed as dist
assert "collshim" not in sys.modules
dist.init_process_group("collshim", store=dist.HashStore(), rank=0, world_size=1)
print(type(dist.group.WORLD).__module__)
dist.destroy_process_group()
"""


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(torch.distributed, "get_backend_impl"), reason="torch before 2.14 has no entry points")
def test_backend_needs_no_import_of_collshim() -> None:
    done = subprocess.run([sys.executable, "-c", UNIMPORTED], capture_output=True, text=True, timeout=200, check=True)
    assert done.stdout.split() == ["collshim.torch.distributed.c10d.group"]
