"""Keep failures that ended groups with calls on NCCL until an error reports them to the program.

A wait on CUDA only orders streams, and the host goes on. If NCCL's call is aborted after that, the program has a tensor
without the data, but might make no further call that would raise an error.
"""

from __future__ import annotations

from collshim.errors import CollshimError, again


class Untold:
    """The unreported failures of a process."""

    def __init__(self) -> None:
        self._failures: dict[str, CollshimError] = {}

    def add(self, key: str, failure: CollshimError) -> None:
        """Note that group ``key`` is about to end with ``failure``."""
        self._failures[key] = failure

    def discard(self, key: str) -> None:
        """Note that an error has reported to the program why the group ended."""
        self._failures.pop(key, None)

    def raise_of(self, key: str) -> None:
        """Raise the failure of a group, once."""
        failure = self._failures.pop(key, None)
        if failure is not None:
            raise again(failure)

    def raise_any(self) -> None:
        """Raise the first failure of all groups, once; the others are only logged."""
        failures, self._failures = self._failures, {}
        for failure in failures.values():
            raise again(failure)
