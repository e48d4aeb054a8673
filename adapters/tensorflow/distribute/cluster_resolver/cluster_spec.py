"""``tf.train.ClusterSpec``: the addresses of a cluster's tasks, job by job. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from collshim.errors import ArgumentValueError

Tasks = Sequence[str] | Mapping[int, str]


class ClusterSpec:
    """Jobs by name, each with its tasks' addresses: a list, or a mapping from indices if some are left out.

    Another ``ClusterSpec`` is copied.
    """

    def __init__(self, cluster: Mapping[str, Tasks] | ClusterSpec) -> None:
        jobs = cluster.as_dict() if isinstance(cluster, ClusterSpec) else cluster
        self._jobs = {job: _by_index(tasks) for job, tasks in jobs.items()}

    def as_dict(self) -> dict[str, list[str] | dict[int, str]]:
        """Return the jobs; a job's tasks are a list if none is left out, else a dict."""
        return {
            job: list(tasks.values()) if list(tasks) == list(range(len(tasks))) else dict(tasks)
            for job, tasks in self._jobs.items()
        }

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
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    __hash__ = None  # type: ignore[assignment]  # as in TensorFlow: comparable, but not hashable

    def __repr__(self) -> str:
        return f"ClusterSpec({dict(sorted(self.as_dict().items()))!r})"

    def _tasks(self, job_name: str) -> dict[int, str]:
        if job_name not in self._jobs:
            raise ArgumentValueError(f"No such job in cluster: {job_name!r}")
        return self._jobs[job_name]


def _by_index(tasks: Tasks) -> dict[int, str]:
    pairs = tasks.items() if isinstance(tasks, Mapping) else enumerate(tasks)
    return {int(index): address for index, address in sorted((int(index), address) for index, address in pairs)}
