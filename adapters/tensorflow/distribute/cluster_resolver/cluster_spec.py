"""``tf.train.ClusterSpec``: the addresses of a cluster's tasks, job by job. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from collshim.errors import ArgumentTypeError, ArgumentValueError

Tasks = Sequence[str] | Mapping[int, str]


@dataclass
class JobDef:
    """``tf.train.JobDef``: a job's name, and its tasks' addresses by number."""

    name: str = ""
    tasks: dict[int, str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = "".join(f'  tasks {{\n    key: {key}\n    value: "{task}"\n  }}\n' for key, task in self.tasks.items())
        return f'job {{\n  name: "{self.name}"\n{lines}}}\n'


@dataclass
class ClusterDef:
    """``tf.train.ClusterDef``: the jobs of a cluster; its text is the protocol's."""

    job: list[JobDef] = field(default_factory=list)

    def __str__(self) -> str:
        return "".join(map(str, self.job))


class ClusterSpec:
    """Jobs by name, each with its tasks' addresses: a list, or a mapping from indices if some are left out.

    A ``ClusterSpec`` or a ``ClusterDef`` is copied.

    Raises:
        TypeError: the argument has any other type, or a name or an address is not a string.
    """

    def __init__(self, cluster: Mapping[str, Tasks] | ClusterSpec | ClusterDef) -> None:
        if isinstance(cluster, ClusterDef):
            jobs: Mapping[str, Tasks] = {job.name: job.tasks for job in cluster.job}
        elif isinstance(cluster, ClusterSpec):
            jobs = cluster._jobs
        else:
            jobs = _mapping(cluster)
        self._jobs: dict[str, dict[int, str]] = {
            _text("Job name", job): _by_index(job, tasks) for job, tasks in jobs.items()
        }

    def as_dict(self) -> dict[str, list[str] | dict[int, str]]:
        """Return the jobs; a job's tasks are a list if none is left out, and a dict otherwise."""
        return {
            job: list(tasks.values()) if tasks and list(tasks) == list(range(len(tasks))) else dict(tasks)
            for job, tasks in self._jobs.items()
        }

    def as_cluster_def(self) -> ClusterDef:
        """Return the jobs as a message of the form of TensorFlow's protocol."""
        return ClusterDef([JobDef(job, dict(tasks)) for job, tasks in sorted(self._jobs.items())])

    @property
    def jobs(self) -> list[str]:
        """The jobs' names."""
        return list(self._jobs)

    def num_tasks(self, job_name: str) -> int:
        """Return the number of tasks of a job."""
        return len(self._tasks(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """Return the numbers of a job's tasks, in order."""
        return list(self._tasks(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """Return the address of one task.

        Raises:
            ValueError: there is no such job or task.
        """
        tasks = self._tasks(job_name)
        if task_index not in tasks:
            raise ArgumentValueError(f"No task with index {task_index!r} in job {job_name!r}")
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """Return the addresses of a job's tasks by their numbers; None for a number that is left out."""
        tasks = self._tasks(job_name)
        return [tasks.get(index) for index in range(max(tasks, default=-1) + 1)]

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return self._jobs == (other._jobs if isinstance(other, ClusterSpec) else other)

    __hash__ = None  # type: ignore[assignment]  # as in TensorFlow: comparable, but not hashable

    def __repr__(self) -> str:
        return f"ClusterSpec({dict(sorted(self.as_dict().items()))!r})"

    def _tasks(self, job_name: str) -> dict[int, str]:
        if job_name not in self._jobs:
            raise ArgumentValueError(f"No such job in cluster: {job_name!r}")
        return self._jobs[job_name]


def _mapping(cluster: object) -> Mapping[str, Tasks]:
    if not isinstance(cluster, Mapping):
        raise ArgumentTypeError(
            "`cluster` must be a dictionary mapping one or more job names to lists of network addresses, or a "
            "`ClusterDef` protocol buffer"
        )
    return cluster


def _by_index(job: str, tasks: Tasks) -> dict[int, str]:
    if isinstance(tasks, str) or not isinstance(tasks, Mapping | Sequence):
        raise ArgumentTypeError(f"The tasks for job {job!r} must be a list or a dictionary from integers to strings.")
    pairs = tasks.items() if isinstance(tasks, Mapping) else enumerate(tasks)
    found = sorted((int(index), _text("Task address", address)) for index, address in pairs)
    return dict(found)


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{what} {value!r} must be bytes or unicode")
    return value
