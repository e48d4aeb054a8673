"""``SlurmClusterResolver``: the cluster of a job step of Slurm. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from typing import Any

from collshim.errors import ArgumentError, ArgumentValueError, also
from collshim.tensorflow.distribute.cluster_resolver.base import ClusterResolver, with_layer
from collshim.tensorflow.distribute.cluster_resolver.cluster_spec import ClusterSpec

_StepError = also(ArgumentError, RuntimeError)
_HOST = re.compile(r"([^,\[\]]*)(?:\[([^\]]+)\])?")
_COUNT = re.compile(r"(\d+)(?:\(x(\d+)\))?")


class SlurmClusterResolver(ClusterResolver):
    """A resolver that reads the variables ``SLURM_*`` of this process's job step.

    Args:
        jobs: the number of tasks of each job; by default, all tasks are workers.
        port_base: the port of the first task on a host; the next tasks on the host have the next ports.
        gpus_per_node: the number of GPUs of a host; by default, the number in ``CUDA_VISIBLE_DEVICES``, or else from
            nvidia-smi.
        gpus_per_task: the number of GPUs of a task; by default, tasks share a host's GPUs evenly.
        tasks_per_node: the number of tasks on every host, or a list for the hosts; by default, the numbers from Slurm.
        auto_set_gpu: whether ``cluster_spec`` sets ``CUDA_VISIBLE_DEVICES`` to this task's GPUs.
        rpc_layer: the prefix that ``master`` puts before an address.

    Attributes:
        task_type: the job of which this process is a task, once ``cluster_spec`` has been called.
        task_id: the number of this process in its job, once ``cluster_spec`` has been called.

    Raises:
        RuntimeError: a variable is missing, or there are too few GPUs or tasks.
    """

    def __init__(
        self,
        jobs: dict[str, int] | None = None,
        port_base: int = 8888,
        gpus_per_node: int | None = None,
        gpus_per_task: int | None = None,
        tasks_per_node: int | dict[str, int] | None = None,
        auto_set_gpu: bool = True,
        rpc_layer: str = "grpc",
    ) -> None:
        self._rank = int(_variable("PROCID"))
        self._jobs = {"worker": int(_variable("STEP_NUM_TASKS"))} if jobs is None else jobs
        self._port_base, self._auto_set_gpu = port_base, auto_set_gpu
        self._tasks = _tasks_of_hosts(tasks_per_node)
        most = max(self._tasks.values())
        self._gpus_per_node = _gpus() if gpus_per_node is None else gpus_per_node
        self._gpus_per_task = self._gpus_per_node // most if gpus_per_task is None else gpus_per_task
        self.task_type: str | None = None
        self.task_id: int | None = None
        self.rpc_layer, self.environment = rpc_layer, ""
        if most * self._gpus_per_task > self._gpus_per_node:
            raise _StepError("Requested more GPUs per node than available.")
        wanted, assigned = sum(self._jobs.values()), sum(self._tasks.values())
        if wanted != assigned:
            raise _StepError(f"Requested {wanted} tasks but only {assigned} were assigned.")

    def cluster_spec(self) -> ClusterSpec:
        """Return the jobs, whose tasks fill the hosts in order; set this process's task, and its GPUs."""
        places = [(host, place) for host, count in sorted(self._tasks.items()) for place in range(count)]
        addresses = [f"{host}:{self._port_base + place}" for host, place in places]
        found, start = {}, 0
        for job, count in sorted(self._jobs.items()):
            found[job] = addresses[start : start + count]
            if start <= self._rank < start + count:
                self.task_type, self.task_id = job, self._rank - start
            start += count
        if self._auto_set_gpu:
            first = places[self._rank][1] * self._gpus_per_task
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(first, first + self._gpus_per_task)))
        return ClusterSpec(found)

    def get_task_info(self) -> tuple[str | None, int | None]:
        """Return the job and the number of this process, once ``cluster_spec`` has been called."""
        return self.task_type, self.task_id

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Return a task's address, by default this process's; empty before ``cluster_spec`` was called."""
        job = self.task_type if task_type is None else task_type
        number = self.task_id if task_id is None else task_id
        if job is None or number is None:
            return ""
        return with_layer(self.cluster_spec().task_address(job, number), rpc_layer or self.rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """Return the number of GPUs of a task."""
        return {"GPU": self._gpus_per_task}


def expand_hostlist(hostlist: str) -> list[str]:
    """Return the hosts of Slurm's short form: ``n[1-2],m5`` is n1, n2, m5.

    Raises:
        ValueError: the text has a different form.
    """
    hosts = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\]?)+", hostlist):
        match = _HOST.fullmatch(part)
        if match is None:
            raise ArgumentValueError(f'Invalid hostlist format "{hostlist}": Invalid part: {part}')
        hosts += [match[1]] if match[2] is None else [match[1] + number for number in _numbers(hostlist, match[2])]
    return hosts


def expand_tasks_per_node(tasks_per_node: str) -> list[int]:
    """Return the counts of Slurm's short form: ``3(x2),1`` is 3, 3, 1.

    Raises:
        ValueError: the text has a different form.
    """
    matches = [(part, _COUNT.fullmatch(part)) for part in tasks_per_node.split(",")]
    found: list[int] = []
    for part, match in matches:
        if match is None:
            raise ArgumentValueError(f'Invalid tasks-per-node list format "{tasks_per_node}": {part}')
        found += [int(match[1])] * int(match[2] or 1)
    return found


def _numbers(hostlist: str, ranges: str) -> Iterator[str]:
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            raise ArgumentValueError(f'Invalid hostlist format "{hostlist}": Invalid part: {part}')
        for number in range(int(first), int(last or first) + 1):
            yield str(number).zfill(len(first))


def _tasks_of_hosts(tasks_per_node: int | dict[str, int] | None) -> dict[str, int]:
    if isinstance(tasks_per_node, dict):
        return tasks_per_node
    hosts = expand_hostlist(_variable("STEP_NODELIST"))
    if tasks_per_node is not None:
        return {host: int(tasks_per_node) for host in hosts}
    return dict(zip(hosts, expand_tasks_per_node(_variable("STEP_TASKS_PER_NODE")), strict=False))


def _variable(name: str) -> str:
    found = os.environ.get(f"SLURM_{name}")
    if found is None:
        raise _StepError(f"SLURM_{name} not found in environment. Not running inside a SLURM step?")
    return found


def _gpus() -> int:
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))
    try:
        listed = subprocess.check_output(["nvidia-smi", "--list-gpus"], encoding="utf-8")
    except subprocess.CalledProcessError as error:
        raise _StepError(
            f"Could not get number of GPUs from nvidia-smi. Maybe it is missing?\n{error.output}"
        ) from error
    return sum(line.startswith("GPU ") for line in listed.splitlines())
