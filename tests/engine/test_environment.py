"""This process's place in the world, read from its launcher's environment."""

from __future__ import annotations

import json
from typing import Any

import pytest

from collshim import WorldError
from collshim.environment import LaunchedRank, forget_others, has_launchers_store, read, record

TORCHRUN = {
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
    "MASTER_ADDR": "host0",
    "MASTER_PORT": "29500",
}


def place(environment: dict[str, str], rank: int | None = None, size: int | None = None, **more: Any) -> LaunchedRank:
    given: dict[str, Any] = {"address": None, "port": None, "needs_address": True, **more}
    return read(rank, size, environment=environment, **given)


def tf_config(kind: str, index: int, **cluster: list[str]) -> str:
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})


WORKERS = ["host0:2222", "host1:2222"]
LAUNCHERS = {
    "torchrun": (TORCHRUN, LaunchedRank(5, 8, "host0", 29500, 1, 4)),
    "an elastic agent": (
        {**TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE": "True"},
        LaunchedRank(5, 8, "host0", 29500, 1, 4, agent_store=True),
    ),
    "four variables": (
        {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "7"},
        LaunchedRank(1, 2, "h", 7, 1, 2),
    ),
    "msrun": (
        {"RANK_ID": "1", "RANK_SIZE": "2", "MS_SCHED_HOST": "h", "MS_SCHED_PORT": "8118"},
        LaunchedRank(1, 2, "h", 8118, 1, 2),
    ),
    "msrun before it has numbered its ranks": (
        {"MS_NODE_ID": "1", "MS_WORKER_NUM": "2", "MS_SCHED_HOST": "h", "MS_SCHED_PORT": "8118"},
        LaunchedRank(1, 2, "h", 8118, 1, 2),
    ),
    "a TensorFlow worker": (
        {"TF_CONFIG": tf_config("worker", 1, worker=WORKERS)},
        LaunchedRank(1, 2, "host0", 2222, 1, 2),
    ),
    "a TensorFlow chief": (
        {"TF_CONFIG": tf_config("worker", 0, chief=["c:1"], worker=WORKERS)},
        LaunchedRank(1, 3, "c", 1, 1, 3),
    ),
    "mpirun on one machine": (
        {
            "OMPI_COMM_WORLD_RANK": "1",
            "OMPI_COMM_WORLD_SIZE": "2",
            "OMPI_COMM_WORLD_LOCAL_RANK": "1",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
        },
        LaunchedRank(1, 2, "127.0.0.1", 29400, 1, 2),
    ),
    "mpiexec with an address": (
        {"PMI_RANK": "1", "PMI_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "9"},
        LaunchedRank(1, 2, "h", 9, 1, 2),
    ),
    "srun on one machine": (
        {
            "SLURM_STEP_ID": "0",
            "SLURM_PROCID": "1",
            "SLURM_NTASKS": "2",
            "SLURM_LOCALID": "1",
            "SLURM_NNODES": "1",
        },
        LaunchedRank(1, 2, "127.0.0.1", 29400, 1, 2),
    ),
    "srun on several nodes": (
        {
            "SLURM_STEP_ID": "0",
            "SLURM_JOB_ID": "123456",
            "SLURM_STEP_NODELIST": "gpu[007-009,12]-ib,cpu1",
            "SLURM_LAUNCH_NODE_IPADDR": "10.0.0.1",
            "SLURM_PROCID": "5",
            "SLURM_NTASKS": "8",
            "SLURM_LOCALID": "1",
            "SLURM_NNODES": "4",
        },
        LaunchedRank(5, 8, "gpu007-ib", 18456, 1, 8),
    ),
    "Flux with an address": (
        {
            "FLUX_TASK_RANK": "1",
            "FLUX_JOB_SIZE": "2",
            "FLUX_TASK_LOCAL_ID": "0",
            "MASTER_ADDR": "h",
            "MASTER_PORT": "9",
        },
        LaunchedRank(1, 2, "h", 9, 0, 2),
    ),
    "jsrun on one machine": (
        {
            "JSM_NAMESPACE_RANK": "1",
            "JSM_NAMESPACE_SIZE": "2",
            "JSM_NAMESPACE_LOCAL_RANK": "1",
            "JSM_NAMESPACE_LOCAL_SIZE": "2",
            "PMIX_RANK": "1",
        },
        LaunchedRank(1, 2, "127.0.0.1", 29400, 1, 2),
    ),
    "nobody": ({}, LaunchedRank(0, 1, "", 0, 0, 1)),
    "an address alone": ({"MASTER_ADDR": "h", "MASTER_PORT": "7"}, LaunchedRank(0, 1, "", 0, 0, 1)),
    "a batch script of Slurm": ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, LaunchedRank(0, 1, "", 0, 0, 1)),
    "a single rank": ({"RANK": "0", "WORLD_SIZE": "1"}, LaunchedRank(0, 1, "", 0, 0, 1)),
}


@pytest.mark.parametrize(("environment", "wanted"), LAUNCHERS.values(), ids=LAUNCHERS)
def test_every_launcher_environment_is_read(environment: dict[str, str], wanted: LaunchedRank) -> None:
    assert place(environment) == wanted


def test_arguments_complete_the_environment() -> None:
    assert place({"WORLD_SIZE": "2"}, rank=1, address="h", port=7) == LaunchedRank(1, 2, "h", 7, 1, 2)


def test_arguments_suffice_alone() -> None:
    assert place({}, 1, 2, address="h", port=7) == LaunchedRank(1, 2, "h", 7, 1, 2)


def test_address_argument_overrides_the_environment() -> None:
    assert place(TORCHRUN, address="other", port=1)[2:4] == ("other", 1)


ALIKE = {
    "a name and its number": ("host0", "10.0.0.1"),
    "a name with and without its domain": ("host0", "host0.cluster.example"),
    "names in small and in large letters": ("host0", "HOST0."),
    "this machine, by name and by number": ("localhost", "127.0.0.1"),
    "two numbers of one machine": ("10.0.0.1", "fe80::1"),
}


@pytest.mark.parametrize(("one", "other"), ALIKE.values(), ids=ALIKE)
def test_names_of_possibly_one_host_are_consistent(one: str, other: str) -> None:
    assert place({**TORCHRUN, "MASTER_ADDR": one, "MS_SCHED_HOST": other}).address == one
    assert place({**TORCHRUN, "MASTER_ADDR": other, "MS_SCHED_HOST": one}).address == other


def test_each_framework_service_can_have_its_port() -> None:
    assert place({**TORCHRUN, "MS_SCHED_HOST": "host0", "MS_SCHED_PORT": "8118"}).port == 29500


def test_device_number_can_differ_from_the_local_rank() -> None:
    assert place({**TORCHRUN, "DEVICE_ID": "7"}).local_rank == 1
    assert place({**TORCHRUN, "DEVICE_ID": "a label"}).local_rank == 1


def test_srun_launch_node_is_only_a_default() -> None:
    step = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_LAUNCH_NODE_IPADDR": "10.0.0.1"}
    assert place({**TORCHRUN, **step}).address == "host0"
    assert place({**step, "MASTER_PORT": "7"})[2:4] == ("10.0.0.1", 7)


def test_torchrun_overrides_srun_and_mpirun() -> None:
    agents = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_NTASKS": "2", "OMPI_COMM_WORLD_RANK": "1"}
    environment = {**agents, **TORCHRUN, "TORCHELASTIC_RUN_ID": "none"}
    assert read(None, None, None, None, needs_address=True, environment=environment) == read(
        None, None, None, None, needs_address=True, environment=TORCHRUN
    )


def test_msrun_scheduler_is_not_a_rank() -> None:
    scheduler = {"MS_ROLE": "MS_SCHED", "RANK_ID": "0", "RANK_SIZE": "2", "MS_SCHED_HOST": "h", "MS_SCHED_PORT": "1"}
    with pytest.raises(SystemExit) as raised:
        read(None, None, None, None, needs_address=True, environment=scheduler)
    assert raised.value.code == 0


def test_arguments_can_override_the_environment() -> None:
    assert place({**TORCHRUN, "MS_SCHED_HOST": "host1"}, 0, 2, overrides=True)[:3] == (0, 2, "host0")


@pytest.mark.parametrize("environment", [environment for environment, _ in LAUNCHERS.values()], ids=LAUNCHERS)
def test_all_launchers_but_torchrun_are_forgotten(environment: dict[str, str]) -> None:
    told = {**environment, **TORCHRUN, "SLURM_JOB_ID": "7"}
    agent = told.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    forget_others(told)
    assert place(told) == place(TORCHRUN)._replace(agent_store=agent)
    assert {**TORCHRUN, "SLURM_JOB_ID": "7"}.items() <= told.items()


def test_store_needs_no_address() -> None:
    assert place({"RANK": "1", "WORLD_SIZE": "2"}, needs_address=False)[:2] == (1, 2)


def test_arguments_can_repeat_the_environment() -> None:
    assert place(TORCHRUN, 5, 8) == place(TORCHRUN)


PAIR = {"rank": 0, "size": 2, "address": "h", "port": 7}
BAD: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    "another rank": (TORCHRUN, {"rank": 4}, "rank is 4 by the arguments, 5 by RANK"),
    "another size": (TORCHRUN, {"size": 9}, "size is 9 by the arguments, 8 by WORLD_SIZE"),
    "two launchers": (
        {**TORCHRUN, "PMI_RANK": "2"},
        {},
        "rank is 5 by RANK, 2 by PMI_RANK",
    ),
    "half an environment": ({"RANK": "1"}, {}, "size is not known.*RANK=1"),
    "the other half": ({"WORLD_SIZE": "2"}, {}, "rank is not known.*WORLD_SIZE=2"),
    "half the arguments": ({}, {"rank": 0}, "size is not known"),
    "no number": ({**TORCHRUN, "RANK": "first"}, {}, "RANK is 'first', should be a number"),
    "no port number": ({**TORCHRUN, "MASTER_PORT": "http"}, {}, "MASTER_PORT is 'http', should be a number"),
    "no address": ({"RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": "7"}, {}, "MASTER_ADDR is not set"),
    "no port": ({"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "h"}, {}, "MASTER_PORT is not set"),
    "a rank beyond the last": ({**TORCHRUN, "RANK": "8"}, {}, "rank is 8, should be from 0 to 7"),
    "a negative rank": ({}, {"rank": -1, "size": 2}, "rank is -1, should be from 0 to 1"),
    "no size": ({}, {"rank": 0, "size": 0}, "rank is 0, should be|size is 0"),
    "a cluster that is no JSON": ({"TF_CONFIG": "{"}, {}, "TF_CONFIG is '{', should be JSON"),
    "a cluster without workers": ({"TF_CONFIG": tf_config("worker", 0)}, {}, "should be JSON with cluster and task"),
    "a rank that is no int": ({}, {"rank": "0", "size": 2}, "rank"),
    "a parameter server": (
        {"TF_CONFIG": tf_config("ps", 1, worker=WORKERS, ps=["p:1", "p:2"])},
        {},
        "the task in TF_CONFIG is 'ps', should be 'chief' or 'worker'",
    ),
    "an evaluator": (
        {"TF_CONFIG": tf_config("evaluator", 0, worker=WORKERS)},
        {},
        "the task in TF_CONFIG is 'evaluator', should be 'chief' or 'worker'",
    ),
    "two addresses": (
        {**TORCHRUN, "MS_SCHED_HOST": "host1"},
        {},
        "address is host0 by MASTER_ADDR, host1 by MS_SCHED_HOST; should be the same",
    ),
    "two numbers of hosts": (
        {**TORCHRUN, "MASTER_ADDR": "10.0.0.1", "MS_SCHED_HOST": "10.0.0.2"},
        {},
        "address is 10.0.0.1 by MASTER_ADDR, 10.0.0.2 by MS_SCHED_HOST",
    ),
    "an address and a cluster's first worker": (
        {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "h", "TF_CONFIG": tf_config("worker", 1, worker=WORKERS)},
        {},
        "address is h by MASTER_ADDR, host0 by TF_CONFIG",
    ),
    "two local ranks": (
        {**TORCHRUN, "OMPI_COMM_WORLD_LOCAL_RANK": "0"},
        {},
        "local rank is 1 by LOCAL_RANK, 0 by OMPI_COMM_WORLD_LOCAL_RANK",
    ),
    "two ranks of msrun": (
        {"RANK_ID": "0", "MS_NODE_ID": "1", "RANK_SIZE": "2", "MS_SCHED_HOST": "h", "MS_SCHED_PORT": "8118"},
        {},
        "rank is 0 by RANK_ID, 1 by MS_NODE_ID",
    ),
    "a port that no machine has": (
        {**TORCHRUN, "MASTER_PORT": "99999999"},
        {},
        "port is 99999999 by MASTER_PORT, should be from 1 to 65535",
    ),
    "a port that is given and no machine has": (
        {},
        {**PAIR, "port": -1},
        "port is -1 by the arguments, should be from",
    ),
    "PMIx, which says no size": ({"PMIX_RANK": "1"}, {}, "size is not known, .* the variables are: PMIX_RANK=1"),
    "an empty address": ({**TORCHRUN, "MASTER_ADDR": ""}, {}, "address is '' by MASTER_ADDR, should be a host's name"),
}


@pytest.mark.parametrize(("environment", "given", "words"), BAD.values(), ids=BAD)
def test_contradiction_is_shown(environment: dict[str, str], given: dict[str, Any], words: str) -> None:
    with pytest.raises(WorldError, match=words):
        place(environment, **given)


OF_RUN = {**TORCHRUN, "RANK_ID": "5", "RANK_SIZE": "8", "MS_NODE_ID": "5", "TORCHELASTIC_USE_AGENT_STORE": "True"}
OF_RUN |= {"TF_CONFIG": tf_config("worker", 5, worker=[f"host0:{29500 + index}" for index in range(8)])}
OF_RUN |= {"TORCHELASTIC_ERROR_FILE": "/errors"}
OF_RUN |= record(OF_RUN)
"""Variables that `collshim run` sets for a rank."""

CHANGES = {
    "nothing": ({}, LaunchedRank(5, 8, "host0", 29500, 1, 4, agent_store=True)),
    "TF_CONFIG": (
        {"TF_CONFIG": tf_config("worker", 1, worker=WORKERS)},
        LaunchedRank(1, 2, "host0", 2222, 1, 2),
    ),
    "the rank and the port": (
        {"RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": "7"},
        LaunchedRank(1, 2, "host0", 7, 1, 2),
    ),
    "MindSpore's rank": ({"RANK_ID": "3", "RANK_SIZE": "4"}, (3, 4)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_launcher_whose_variables_a_script_changes_applies_alone(change: str) -> None:
    changed, expected = CHANGES[change]
    found = place({**OF_RUN, **changed}, needs_address=len(expected) > 2)
    assert found[: len(expected)] == expected


def test_removed_variable_changes_nothing() -> None:
    assert place({name: value for name, value in OF_RUN.items() if name != "TF_CONFIG"}) == place(OF_RUN)


@pytest.mark.parametrize(
    ("host", "port", "changed", "expected"),
    [
        ("host0", 29500, {}, True),
        ("host0", 7, {}, False),
        ("host1", 29500, {}, False),
        ("host0", 7, {"TORCHELASTIC_ERROR_FILE": "/errors of torchrun"}, True),
        ("host0", 29500, {"TORCHELASTIC_USE_AGENT_STORE": "False"}, False),
    ],
)
def test_launchers_store_is_known_by_its_address(host: str, port: int, changed: dict[str, str], expected: bool) -> None:
    assert has_launchers_store({**OF_RUN, **changed}, host, port) is expected
