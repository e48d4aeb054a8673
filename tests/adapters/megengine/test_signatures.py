"""The names, kinds and defaults of MegEngine 1.13.0's parameters."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import collshim.megengine as mge
from collshim.megengine.distributed import helper
from collshim.megengine.functional import distributed as F

dist = mge.distributed
REQUIRED = inspect.Parameter.empty
COLLECTIVE = [("inp", REQUIRED), ("group", dist.WORLD), ("device", None)]
ALONG = [*COLLECTIVE, ("axis", 0)]
SERVED = [("master_ip", REQUIRED), ("port", REQUIRED)]

PARAMETERS: list[tuple[Any, list[tuple[str, Any]]]] = [
    (F.reduce_sum, COLLECTIVE),
    (F.broadcast, COLLECTIVE),
    (F.all_reduce_sum, COLLECTIVE),
    (F.all_reduce_max, COLLECTIVE),
    (F.all_reduce_min, COLLECTIVE),
    (F.all_gather, ALONG),
    (F.reduce_scatter_sum, ALONG),
    (F.gather, ALONG),
    (F.scatter, ALONG),
    (F.all_to_all, [*COLLECTIVE, ("split_axis", 0), ("concat_axis", 0)]),
    (F.remote_send, [("inp", REQUIRED), ("dest_rank", REQUIRED)]),
    (F.remote_recv, [("src_rank", REQUIRED), ("device", None), ("inp", None)]),
    (
        F.collective_comm,
        [("inp", REQUIRED), ("mode", REQUIRED), ("group", REQUIRED), ("device", REQUIRED)],
    ),
    (
        dist.init_process_group,
        [
            *SERVED,
            ("world_size", REQUIRED),
            ("rank", REQUIRED),
            ("device", REQUIRED),
            ("backend", "auto"),
            ("device_type", "xpu"),
        ],
    ),
    (dist.is_distributed, []),
    (dist.get_rank, []),
    (dist.get_world_size, []),
    (dist.get_backend, []),
    (dist.get_client, []),
    (dist.get_py_server_addr, []),
    (dist.get_mm_server_addr, []),
    (dist.new_group, [("proc_ranks", REQUIRED)]),
    (dist.group_barrier, [("group", dist.WORLD)]),
    (dist.override_backend, [("new_backend", REQUIRED)]),
    (dist.bcast_list_, [("inps", REQUIRED), ("group", dist.WORLD)]),
    (dist.synchronized, [("func", REQUIRED)]),
    (dist.make_allreduce_cb, [("reduce_method", REQUIRED), ("group", dist.WORLD), ("backend", None)]),
    (helper.AllreduceCallback, [("reduce_method", REQUIRED), ("group", dist.WORLD), ("backend", None)]),
    (helper.TensorFuture, [("ack", True)]),
    (helper.get_offsets, [("shapes", REQUIRED)]),
    (helper.param_pack_concat, [("inps", REQUIRED), ("offsets", REQUIRED), ("offsets_val", REQUIRED)]),
    (helper.param_pack_split, [("inp", REQUIRED), ("offsets", REQUIRED), ("shapes", REQUIRED)]),
    (
        helper.pack_allreduce_split,
        [("pack_list", REQUIRED), ("shapes", REQUIRED), ("group", REQUIRED), ("reduce_method", REQUIRED)],
    ),
    (dist.Server, [("port", 0)]),
    (dist.Client, SERVED),
    (dist.Group, [("proc_ranks", REQUIRED)]),
    (dist.Group.check, [("self", REQUIRED), ("proc_ranks", REQUIRED)]),
    (dist.Group.reset, [("self", REQUIRED), ("proc_ranks", REQUIRED)]),
    (dist.Client.bcast_val, [("self", REQUIRED), ("val", REQUIRED), ("key", REQUIRED), ("size", REQUIRED)]),
    (dist.Client.group_barrier, [("self", REQUIRED), ("key", REQUIRED), ("size", REQUIRED)]),
    (dist.Client.user_set, [("self", REQUIRED), ("key", REQUIRED), ("val", REQUIRED)]),
    (dist.Client.user_get, [("self", REQUIRED), ("key", REQUIRED)]),
    (dist.Client.user_pop, [("self", REQUIRED), ("key", REQUIRED)]),
    (dist.Client.set_is_grad, [("self", REQUIRED), ("key", REQUIRED), ("is_grad", REQUIRED)]),
    (dist.Client.check_is_grad, [("self", REQUIRED), ("key", REQUIRED)]),
    (dist.Client.set_remote_tracer, [("self", REQUIRED), ("key", REQUIRED), ("tracer_set", REQUIRED)]),
    (dist.Client.check_remote_tracer, [("self", REQUIRED), ("key", REQUIRED)]),
    (dist.Client.connect, [("self", REQUIRED)]),
    (dist.Client.get_mm_server_port, [("self", REQUIRED)]),
]


@pytest.mark.parametrize(("function", "parameters"), PARAMETERS, ids=lambda one: getattr(one, "__qualname__", ""))
def test_parameters_are_megengines(function: Any, parameters: list[tuple[str, Any]]) -> None:
    found = inspect.signature(function).parameters.values()
    assert [(parameter.name, parameter.default) for parameter in found] == parameters
    assert all(parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for parameter in found)


def test_the_launcher_takes_anything_as_megengines_does() -> None:
    kinds = {name: parameter.kind for name, parameter in inspect.signature(dist.launcher).parameters.items()}
    assert kinds == {"args": inspect.Parameter.VAR_POSITIONAL, "kwargs": inspect.Parameter.VAR_KEYWORD}


def test_both_paths_lead_to_the_same_functions() -> None:
    assert mge.distributed.functional.all_gather is mge.functional.distributed.all_gather


@pytest.mark.parametrize("module", [mge, mge.functional, mge.distributed, mge.autodiff])
def test_a_name_that_is_not_covered_says_what_is(module: Any) -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'quantization'.* covers "):
        _ = module.quantization
