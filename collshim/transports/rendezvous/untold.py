"""Failures that ended groups while NCCL had calls of theirs, for as long as the program has not been told.

A wait on CUDA orders streams, and the host goes on. If NCCL's call is aborted after that, the program has a tensor
without the data, and perhaps makes no other call that would raise.
"""

from __future__ import annotations

from collshim.errors import CollshimError, again


class Untold:
    """Those of a process."""

    def __init__(self) -> None:
        self._failures: dict[str, CollshimError] = {}

    def add(self, key: str, failure: CollshimError) -> None:
        """Group ``key`` is about to end with ``failure``."""
        self._failures[key] = failure

    def told(self, key: str) -> None:
        """An error that the program got says why the group ended."""
        self._failures.pop(key, None)

    def raise_of(self, key: str) -> None:
        """Raise the failure of a group, once."""
        failure = self._failures.pop(key, None)
        if failure is not None:
            raise again(failure)

    def raise_any(self) -> None:
        """Raise the first failure of all groups, once; the others are told by the log alone."""
        failures, self._failures = self._failures, {}
        for failure in failures.values():
            raise again(failure)
