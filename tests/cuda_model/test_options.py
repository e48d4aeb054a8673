"""torch's options for NCCL apply to a group's communicator, however the group is made; others are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed
from torch.distributed import HashStore

import collshim
import collshim.torch.distributed as dist
from collshim import Communicator
from collshim.torch.distributed.c10d.backend import NAME
from tests.cuda_model import model
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import among_gpus, device, ones, values
from tests.engine.worlds import attempt

require_model()

CTAS = "communicators of at most 4 CTAs"


def options(ctas: int = 4) -> Any:
    made: Any = torch.distributed.ProcessGroupNCCL.Options(is_high_priority_stream=True)
    made.config.max_ctas = ctas
    made.config.cga_cluster_size = 2
    return made


def of_the_world(comm: Communicator) -> Any:
    dist.init_process_group("nccl", pg_options=options())
    return None


def of_a_group(comm: Communicator) -> Any:
    dist.init_process_group("nccl")
    return dist.new_group([0, 1], pg_options=options())


def of_a_split(comm: Communicator) -> Any:
    dist.init_process_group("nccl")
    return dist.split_group(split_ranks=[[0, 1]], pg_options=options())


def of_a_split_that_inherits(comm: Communicator) -> Any:
    dist.init_process_group("nccl", pg_options=options())
    return dist.split_group(split_ranks=[[0, 1]])


def of_subgroups(comm: Communicator) -> Any:
    dist.init_process_group("nccl")
    return dist.new_subgroups(2, pg_options=options())[0]


def of_listed_subgroups(comm: Communicator) -> Any:
    dist.init_process_group("nccl")
    return dist.new_subgroups_by_enumeration([[1, 0]], pg_options=options())[0]


WAYS: dict[str, Callable[[Communicator], Any]] = {
    "init_process_group": of_the_world,
    "new_group": of_a_group,
    "split_group": of_a_split,
    "split_group, the parent's": of_a_split_that_inherits,
    "new_subgroups": of_subgroups,
    "new_subgroups_by_enumeration": of_listed_subgroups,
}


def connected(comm: Communicator, way: str) -> Any:
    group = WAYS[way](comm)
    dist.all_reduce(ones(), group=group)
    own: Any = (comm if group is None else group.communicator)._transport
    found = own.gpu_port.options
    dist.destroy_process_group()
    return found.is_high_priority_stream, found.config.max_ctas, found.config.cga_cluster_size, found.group_name


@pytest.mark.parametrize("way", WAYS)
def test_nccl_connects_a_group_with_its_options(way: str) -> None:
    for found in values(among_gpus(connected, 2, way)):
        assert found[:3] == (True, 4, 2)
        assert found[3].endswith("/data")  # the group's own name
    assert model.count(CTAS) == 2


def late(comm: Communicator) -> Any:
    """Give options for a world whose ranks are connected: different ones, then the same."""
    dist.init_process_group("nccl", pg_options=options())
    dist.all_reduce(ones())
    dist.destroy_process_group()
    other = attempt(lambda: dist.init_process_group("nccl", pg_options=options(8)))
    same = attempt(lambda: dist.init_process_group("nccl", pg_options=options()))
    dist.destroy_process_group()
    return other, same.raised


def test_late_options_are_refused() -> None:
    for other, same in values(among_gpus(late, 2)):
        assert "ValueError" in other.raised
        assert "NCCL's options were passed after it had connected the ranks" in other.text
        assert same == ()


def refused(comm: Communicator) -> list[Any]:
    gloo: Any = torch.distributed.ProcessGroupGloo
    first = attempt(lambda: dist.init_process_group("gloo", pg_options=gloo._Options()))
    dist.init_process_group("nccl")
    second = attempt(lambda: dist.new_group([0, 1], pg_options={"max_ctas": 4}))
    total = comm.all_reduce(ones()).wait().tolist()  # nothing was sent meanwhile
    dist.destroy_process_group()
    return [first, second, total]


def test_options_of_another_class_are_refused() -> None:
    for first, second, total in values(among_gpus(refused, 2)):
        assert "AssertionError" in first.raised
        assert "to be of type ProcessGroupNCCL.Options, got ProcessGroupGloo._Options" in first.text
        assert "got dict" in second.text
        assert total == [2.0] * 4


def test_engine_refuses_options_of_another_class() -> None:
    def scenario(comm: Communicator) -> str:
        return attempt(lambda: comm.set_nccl_options({"max_ctas": 4})).text

    assert (
        "NCCL's options are a dict, should be those of torch.distributed.ProcessGroupNCCL.Options"
        in values(among_gpus(scenario, 2))[0]
    )


def alone() -> Any:
    """Use torch's own functions over the backend on one rank: there is no NCCL, and the options have no effect."""
    torch.distributed.init_process_group(NAME, store=HashStore(), rank=0, world_size=1, pg_options=options())
    try:
        group = torch.distributed.new_group([0], pg_options=options())
        x = torch.full((2,), 3.0, device=device())
        torch.distributed.all_reduce(x, group=group)
        made: tuple[Any, ...] = torch.distributed.group.WORLD, group
        return x.tolist(), [one.options.config.max_ctas for one in made]
    finally:
        torch.distributed.destroy_process_group()


def reconfigurable(comm: Communicator) -> Any:
    given = options()
    given.enable_reconfigure = True
    comm.set_nccl_options(given)


@pytest.mark.skipif(not hasattr(options(), "enable_reconfigure"), reason="torch has the option since 2.15")
def test_communicator_that_is_made_anew_is_refused() -> None:
    expected = "NCCL's options have enable_reconfigure, should not: make a new group instead"
    assert [outcome.text for outcome in among_gpus(reconfigurable, 2)] == [expected] * 2


def test_single_rank_accepts_options_without_effect() -> None:
    assert alone() == ([3.0, 3.0], [4, 4])  # the groups have the options
    assert model.count("communicators") == 0


def test_torch_functions_refuse_options_of_another_class() -> None:
    init = torch.distributed.init_process_group
    found = attempt(lambda: init(NAME, store=HashStore(), rank=0, world_size=1, pg_options={"a": 1}))
    assert "got dict" in found.text
    assert not torch.distributed.is_initialized()


def test_thread_ranks_accept_options_without_effect() -> None:
    def scenario() -> list[float]:
        dist.init_process_group("nccl", pg_options=options())
        x = torch.ones(2, device="cuda")
        dist.all_reduce(x)
        dist.destroy_process_group()
        return list(x.tolist())

    assert collshim.launch(scenario, 2, timeout=200) == [[2.0, 2.0]] * 2
