"""``UnionResolver``: the clusters of several resolvers as one. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from typing import Any

from collshim.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, also
from collshim.tensorflow.distribute.cluster_resolver.base import ClusterResolver, with_layer
from collshim.tensorflow.distribute.cluster_resolver.cluster_spec import ClusterSpec

Jobs = dict[str, list[Any]]


class UnionResolver(ClusterResolver):
    """A resolver with the jobs and tasks of several resolvers; the first one provides everything else.

    Args:
        args: the resolvers.
        kwargs: ``task_type``, ``task_id`` and ``rpc_layer``, which have precedence over the first resolver's.

    Raises:
        ValueError: there is no resolver, or an unknown keyword.
        TypeError: an argument is not a ``ClusterResolver``.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._rpc_layer = kwargs.pop("rpc_layer", None)
        self._task_type = kwargs.pop("task_type", None)
        self._task_id = kwargs.pop("task_id", None)
        if kwargs:
            raise ArgumentValueError(f"Unexpected kwargs provided {kwargs!r}")
        if not args:
            raise ArgumentValueError("At least one ClusterResolver is required.")
        if not all(isinstance(resolver, ClusterResolver) for resolver in args):
            raise ArgumentTypeError("All arguments must be a sub-class of `ClusterResolver.`")
        self._resolvers = args

    def cluster_spec(self) -> ClusterSpec:
        """Return all jobs: lists of tasks are joined; numbered tasks are merged.

        Raises:
            KeyError: two resolvers have a task of the same number, and one of them leaves numbers out.
        """
        found: Jobs = {}
        for resolver in self._resolvers:
            for job, tasks in resolver.cluster_spec().as_dict().items():
                found.setdefault(job, []).append(tasks)
        return ClusterSpec({job: _merged(several) for job, several in found.items()})

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Return the address of a task, or without one the first resolver's master."""
        if task_type is not None and task_id is not None:
            return with_layer(self.cluster_spec().task_address(task_type, task_id), rpc_layer or self._rpc_layer)
        address: str = self._resolvers[0].master(rpc_layer=rpc_layer)
        return address

    @property
    def task_type(self) -> str | None:
        """The job of which this process is a task."""
        found: str | None = self._task_type or self._resolvers[0].task_type
        return found

    @task_type.setter
    def task_type(self, task_type: str) -> None:
        self._task_type = task_type

    @property
    def task_id(self) -> int | None:
        """The number of this process in its job."""
        found: int | None = self._task_id or self._resolvers[0].task_id
        return found

    @task_id.setter
    def task_id(self, task_id: int) -> None:
        self._task_id = task_id

    @property
    def rpc_layer(self) -> str | None:
        """The prefix that ``master`` puts before an address."""
        found: str | None = self._rpc_layer or self._resolvers[0].rpc_layer
        return found

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: str) -> None:
        self._rpc_layer = rpc_layer

    @property
    def environment(self) -> Any:
        """The first resolver's environment."""
        return self._resolvers[0].environment

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """Return the first resolver's numbers."""
        numbers: dict[str, int] = self._resolvers[0].num_accelerators(task_type, task_id, config_proto)
        return numbers


def _merged(several: list[Any]) -> Any:
    if all(isinstance(tasks, list) for tasks in several):
        return [task for tasks in several for task in tasks]
    whole: dict[int, str] = {}
    for tasks in several:
        numbered = dict(enumerate(tasks)) if isinstance(tasks, list) else tasks
        if twice := whole.keys() & numbered.keys():
            raise also(ArgumentError, KeyError)(f"Duplicate keys detected when merging two ClusterSpecs: {twice!r}")
        whole.update(numbered)
    return whole
