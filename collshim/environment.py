"""Which rank this process is, from what its launcher says.

| launcher | rank, size | address |
| --- | --- | --- |
| torchrun, OneFlow's launcher, ``collshim run`` | RANK, WORLD_SIZE | MASTER_ADDR, MASTER_PORT |
| msrun | RANK_ID (or MS_NODE_ID), RANK_SIZE (or MS_WORKER_NUM) | MS_SCHED_HOST, MS_SCHED_PORT |
| a TensorFlow cluster | the task's index, the number of workers in TF_CONFIG | the first worker of TF_CONFIG |
| Open MPI's mpirun | OMPI_COMM_WORLD_RANK, ..._SIZE | MASTER_ADDR, MASTER_PORT, else this machine if all are here |
| MPICH's mpiexec | PMI_RANK, PMI_SIZE | as for mpirun |
| Slurm's srun | SLURM_PROCID, SLURM_NTASKS | as for mpirun, else SLURM_LAUNCH_NODE_IPADDR |

Where none of them says anything the world is a single rank. Two that contradict each other are an error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from collshim.errors import WorldError

Environment = Mapping[str, str]

_DERIVED_PORT = 29400
"""Where rank 0 listens when mpirun or srun started all ranks on this machine and nobody named a port."""


class Place(NamedTuple):
    """A rank's place among the processes of its world.

    ``agent_store`` tells that the launcher serves the store at that port, as torch's elastic agent does.
    """

    rank: int
    size: int
    address: str
    port: int
    local_rank: int
    local_size: int
    agent_store: bool = False


class Told(NamedTuple):
    """What one launcher says; None where it is silent."""

    launcher: str
    rank: int | None
    size: int | None
    address: str | None = None
    port: int | None = None
    local_rank: int | None = None
    local_size: int | None = None


def read(
    rank: int | None,
    size: int | None,
    address: str | None,
    port: int | None,
    *,
    needs_address: bool,
    environment: Environment = os.environ,
) -> Place:
    """What is given, completed by the environment; a single rank where nothing says otherwise.

    Raises:
        WorldError: half an environment, a value that is no number, a rank outside the world, or two sources that
            contradict each other, both shown.
    """
    for what, given in (("rank", rank), ("size", size), ("port", port)):
        if given is not None and (isinstance(given, bool) or not isinstance(given, int)):
            raise WorldError(f"the world's {what} is {given!r}, should be an int")
    told = [Told("the arguments", rank, size, address, port), *_launchers(environment)]
    found_rank, found_size = _agreed("rank", told), _agreed("size", told)
    if found_rank is None and found_size is None:
        return Place(0, 1, "", 0, 0, 1)
    if found_rank is None or found_size is None:
        raise WorldError(_half(environment, "rank" if found_rank is None else "size"))
    if not 0 <= found_rank < found_size:
        raise WorldError(f"rank is {found_rank}, should be from 0 to {found_size - 1} in a world of {found_size}")
    return _placed(found_rank, found_size, told, needs_address and found_size > 1, environment)


def _placed(rank: int, size: int, told: list[Told], needs_address: bool, environment: Environment) -> Place:
    local_rank, local_size = _first("local_rank", told), _first("local_size", told)
    host, port = _first("address", told), _first("port", told)
    if needs_address and host is None and local_size == size:
        host, port = "127.0.0.1", port or _DERIVED_PORT
    if needs_address and (host is None or port is None):
        missing = "MASTER_ADDR" if host is None else "MASTER_PORT"
        raise WorldError(f"{missing} is not set, should say where rank 0 listens (rank {rank} of {size})")
    agent = environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return Place(
        rank,
        size,
        host or "",
        port or 0,
        rank if local_rank is None else local_rank,
        size if local_size is None else local_size,
        agent,
    )


def _first(field: str, told: list[Told]) -> Any:
    return next((getattr(source, field) for source in told if getattr(source, field) is not None), None)


def _agreed(field: str, told: list[Told]) -> int | None:
    """The value of all sources that name one; an error where they differ."""
    named = [(source.launcher, getattr(source, field)) for source in told if getattr(source, field) is not None]
    if any(value != named[0][1] for _, value in named):
        shown = ", ".join(f"{value} by {launcher}" for launcher, value in named)
        raise WorldError(f"the world's {field} is {shown}; should be the same, or one of them be unset")
    value: int | None = named[0][1] if named else None
    return value


def _half(environment: Environment, lacking: str) -> str:
    known = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "RANK_ID", "RANK_SIZE", "TF_CONFIG")
    there = ", ".join(f"{name}={environment[name]}" for name in known if name in environment) or "none of the usual"
    return f"the world's {lacking} is not told, should be given or set by the launcher; set are: {there}"


def _launchers(environment: Environment) -> list[Told]:
    return [launcher(environment) for launcher in (_torchrun, _msrun, _tensorflow, _openmpi, _mpich, _slurm)]


def _torchrun(environment: Environment) -> Told:
    number = _numbers(environment)
    return Told(
        "RANK and WORLD_SIZE",
        number("RANK"),
        number("WORLD_SIZE"),
        environment.get("MASTER_ADDR"),
        number("MASTER_PORT"),
        number("LOCAL_RANK"),
        number("LOCAL_WORLD_SIZE"),
    )


def _msrun(environment: Environment) -> Told:
    number = _numbers(environment)
    rank = number("RANK_ID") if "RANK_ID" in environment else number("MS_NODE_ID")
    size = number("RANK_SIZE") if "RANK_SIZE" in environment else number("MS_WORKER_NUM")
    host, port = environment.get("MS_SCHED_HOST"), number("MS_SCHED_PORT")
    return Told("RANK_ID and RANK_SIZE", rank, size, host, port, number("DEVICE_ID"))


def _tensorflow(environment: Environment) -> Told:
    if "TF_CONFIG" not in environment:
        return Told("TF_CONFIG", None, None)
    try:
        config = json.loads(environment["TF_CONFIG"])
        cluster, task = config["cluster"], config["task"]
        workers = [*cluster.get("chief", []), *cluster.get("worker", [])]
        rank = int(task["index"]) + (len(cluster.get("chief", [])) if task["type"] == "worker" else 0)
        host, _, port = workers[0].rpartition(":")
        return Told("TF_CONFIG", rank, len(workers), host, int(port))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        text = environment["TF_CONFIG"]
        raise WorldError(f"TF_CONFIG is {text!r}, should be JSON with cluster and task: {error!r}") from error


def _openmpi(environment: Environment) -> Told:
    number = _numbers(environment)
    return Told(
        "OMPI_COMM_WORLD_RANK and _SIZE",
        number("OMPI_COMM_WORLD_RANK"),
        number("OMPI_COMM_WORLD_SIZE"),
        local_rank=number("OMPI_COMM_WORLD_LOCAL_RANK"),
        local_size=number("OMPI_COMM_WORLD_LOCAL_SIZE"),
    )


def _mpich(environment: Environment) -> Told:
    number = _numbers(environment)
    return Told(
        "PMI_RANK and PMI_SIZE",
        number("PMI_RANK"),
        number("PMI_SIZE"),
        local_rank=number("MPI_LOCALRANKID"),
        local_size=number("MPI_LOCALNRANKS"),
    )


def _slurm(environment: Environment) -> Told:
    """A task of srun; in a batch script itself, which is no task, SLURM_PROCID may stand without a step."""
    if "SLURM_STEP_ID" not in environment:
        return Told("Slurm", None, None)
    number = _numbers(environment)
    rank, size = number("SLURM_PROCID"), number("SLURM_NTASKS")
    host = environment.get("SLURM_LAUNCH_NODE_IPADDR")
    alone = environment.get("SLURM_NNODES") == "1"
    return Told(
        "SLURM_PROCID and SLURM_NTASKS", rank, size, host, None, number("SLURM_LOCALID"), size if alone else None
    )


def _numbers(environment: Environment) -> Callable[[str], int | None]:
    def number(name: str) -> int | None:
        if name not in environment:
            return None
        try:
            return int(environment[name])
        except ValueError as error:
            raise WorldError(f"{name} is {environment[name]!r}, should be a number") from error

    return number
