"""``mindspore.common.api``: the executor of programs that run line by line (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collshim.mindspore.runtime import synchronize


class _PyNativeExecutor:
    """The executor, which runs every line at once."""

    def sync(self) -> None:
        """Wait until this rank's computations are complete."""
        synchronize()


_pynative_executor = _PyNativeExecutor()
