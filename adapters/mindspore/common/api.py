"""``mindspore.common.api``: the executor of programs that run line by line (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collshim.mindspore.runtime import synchronize


class _PyNativeExecutor:
    """Runs every line when it comes."""

    def sync(self) -> None:
        """What this rank has computed is there."""
        synchronize()


_pynative_executor = _PyNativeExecutor()
