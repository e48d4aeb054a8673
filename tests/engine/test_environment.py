"""Where this process stands, read from what its launcher left in the environment."""

from __future__ import annotations

import json
from typing import Any

import pytest

from collshim import WorldError
from collshim.environment import Place, read

TORCHRUN = {
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
    "MASTER_ADDR": "host0",
    "MASTER_PORT": "29500",
}


def place(environment: dict[str, str], rank: int | None = None, size: int | None = None, **more: Any) -> Place:
    given: dict[str, Any] = {"address": None, "port": None, "needs_address": True, **more}
    return read(rank, size, environment=environment, **given)


def tf_config(kind: str, index: int, **cluster: list[str]) -> str:
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})


WORKERS = ["host0:2222", "host1:2222"]
LAUNCHERS = {
    "torchrun": (TORCHRUN, Place(5, 8, "host0", 29500, 1, 4)),
    "an elastic agent": (
        {**TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE": "True"},
        Place(5, 8, "host0", 29500, 1, 4, agent_store=True),
    ),
    "four variables": (
        {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "7"},
        Place(1, 2, "h", 7, 1, 2),
    ),
    "msrun": (
        {"RANK_ID": "1", "RANK_SIZE": "2", "MS_SCHED_HOST": "h", "MS_SCHED_PORT": "8118"},
        Place(1, 2, "h", 8118, 1, 2),
    ),
    "msrun before it has numbered its ranks": (
        {"MS_NODE_ID": "1", "MS_WORKER_NUM": "2", "MS_SCHED_HOST": "h", "MS_SCHED_PORT": "8118"},
        Place(1, 2, "h", 8118, 1, 2),
    ),
    "a TensorFlow worker": (
        {"TF_CONFIG": tf_config("worker", 1, worker=WORKERS)},
        Place(1, 2, "host0", 2222, 1, 2),
    ),
    "a TensorFlow chief": (
        {"TF_CONFIG": tf_config("worker", 0, chief=["c:1"], worker=WORKERS)},
        Place(1, 3, "c", 1, 1, 3),
    ),
    "mpirun on one machine": (
        {
            "OMPI_COMM_WORLD_RANK": "1",
            "OMPI_COMM_WORLD_SIZE": "2",
            "OMPI_COMM_WORLD_LOCAL_RANK": "1",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
        },
        Place(1, 2, "127.0.0.1", 29400, 1, 2),
    ),
    "mpiexec with an address": (
        {"PMI_RANK": "1", "PMI_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "9"},
        Place(1, 2, "h", 9, 1, 2),
    ),
    "srun on one machine": (
        {
            "SLURM_STEP_ID": "0",
            "SLURM_PROCID": "1",
            "SLURM_NTASKS": "2",
            "SLURM_LOCALID": "1",
            "SLURM_NNODES": "1",
        },
        Place(1, 2, "127.0.0.1", 29400, 1, 2),
    ),
    "nobody": ({}, Place(0, 1, "", 0, 0, 1)),
    "an address alone": ({"MASTER_ADDR": "h", "MASTER_PORT": "7"}, Place(0, 1, "", 0, 0, 1)),
    "a batch script of Slurm": ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, Place(0, 1, "", 0, 0, 1)),
    "a single rank": ({"RANK": "0", "WORLD_SIZE": "1"}, Place(0, 1, "", 0, 0, 1)),
}


@pytest.mark.parametrize(("environment", "wanted"), LAUNCHERS.values(), ids=LAUNCHERS)
def test_every_launcher_tells_where_this_process_stands(environment: dict[str, str], wanted: Place) -> None:
    assert place(environment) == wanted


def test_arguments_complete_the_environment() -> None:
    assert place({"WORLD_SIZE": "2"}, rank=1, address="h", port=7) == Place(1, 2, "h", 7, 1, 2)


def test_arguments_stand_alone() -> None:
    assert place({}, 1, 2, address="h", port=7) == Place(1, 2, "h", 7, 1, 2)


def test_an_address_that_is_given_goes_before_the_environments() -> None:
    assert place(TORCHRUN, address="other", port=1)[2:4] == ("other", 1)


def test_a_store_needs_no_address() -> None:
    assert place({"RANK": "1", "WORLD_SIZE": "2"}, needs_address=False)[:2] == (1, 2)


def test_arguments_may_repeat_the_environment() -> None:
    assert place(TORCHRUN, 5, 8) == place(TORCHRUN)


BAD: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    "another rank": (TORCHRUN, {"rank": 4}, "rank is 4 by the arguments, 5 by RANK and WORLD_SIZE"),
    "another size": (TORCHRUN, {"size": 9}, "size is 9 by the arguments, 8 by RANK and WORLD_SIZE"),
    "two launchers": (
        {**TORCHRUN, "PMI_RANK": "2"},
        {},
        "rank is 5 by RANK and WORLD_SIZE, 2 by PMI_RANK and PMI_SIZE",
    ),
    "half an environment": ({"RANK": "1"}, {}, "size is not told.*RANK=1"),
    "the other half": ({"WORLD_SIZE": "2"}, {}, "rank is not told.*WORLD_SIZE=2"),
    "half the arguments": ({}, {"rank": 0}, "size is not told"),
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
}


@pytest.mark.parametrize(("environment", "given", "words"), BAD.values(), ids=BAD)
def test_what_contradicts_itself_is_shown(environment: dict[str, str], given: dict[str, Any], words: str) -> None:
    with pytest.raises(WorldError, match=words):
        place(environment, **given)
