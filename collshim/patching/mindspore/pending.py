"""Calls that were started and not waited for: MindSpore's handles, and the memory that may still be written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from collshim.patching.replacing import Foreign
from collshim.work import Work

Span = tuple[int, int]


class Handle:
    """The object that MindSpore's ``CommHandle`` waits for."""

    def __init__(
        self, works: Sequence[Work[Foreign]], targets: Sequence[Tensor], endings: Sequence[Callable[[], None]] = ()
    ) -> None:
        self.spans = [span(target) for target in targets]
        self._works, self._endings = works, endings
        for work in works:
            work.free()  # a handle may be dropped

    def done(self) -> bool:
        """Return whether ``wait`` would return at once."""
        return all(work.done() for work in self._works)

    def wait(self) -> None:
        """Wait until the data has arrived."""
        for work in self._works:
            work.wait()
        endings, self._endings, self.spans = self._endings, (), []
        for ending in endings:
            ending()


class PendingHandles:
    """The handles whose memory may still be written."""

    def __init__(self) -> None:
        self._handles: list[Handle] = []

    def __bool__(self) -> bool:
        return bool(self._handles)

    def add(self, handle: Handle) -> Handle:
        """Add a handle, which any reader of its memory will wait for."""
        for other in self._handles:
            if other.done():
                other.wait()
        self._handles = [*(other for other in self._handles if other.spans), handle]
        return handle

    def settle(self, first: int, last: int) -> None:
        """Wait for the handles that write into the memory between two addresses."""
        for handle in self._handles:
            if any(begin < last and first < end for begin, end in handle.spans):
                handle.wait()
        self._handles = [handle for handle in self._handles if handle.spans]


def span(tensor: Tensor) -> Span:
    """Return the addresses between which a tensor's elements lie."""
    if not tensor.numel():
        return tensor.data_ptr(), tensor.data_ptr()
    last = sum((length - 1) * step for length, step in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()
