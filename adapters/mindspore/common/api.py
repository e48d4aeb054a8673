"""``mindspore.common.api``: ``jit``, and the executors, which run programs line by line (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

from collshim.mindspore.common.jit import jit, jit_class
from collshim.mindspore.runtime import synchronize

__all__ = ["jit", "jit_class"]


class _PyNativeExecutor:
    """The executor, which runs every line at once."""

    def sync(self) -> None:
        """Wait until this rank's computations are complete."""
        synchronize()


class _CellGraphExecutor:
    """The executor of graphs; it runs Cells line by line, because nothing is compiled."""

    def compile(self, obj: Any, *args: Any, **kwargs: Any) -> tuple[str, bool]:
        """Return a Cell's phase and True: nothing is compiled."""
        return obj.phase, True

    def __call__(self, obj: Any, *args: Any, phase: str = "predict") -> Any:
        """Return the Cell's result."""
        return obj(*args)


_pynative_executor = _PyNativeExecutor()
_cell_graph_executor = _CellGraphExecutor()
