"""``Work``: what ``async_op=True``, ``isend`` and ``irecv`` return; and how a call is posted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import collshim.work
from collshim.communicator import Communicator
from collshim.errors import ArgumentError, also
from collshim.torch.distributed.arguments import refuse, seconds
from collshim.torch.distributed.membership import ProcessGroup

_NO_TIMEOUT = timedelta(0)


class Work:
    """A call under way: its outputs hold their values after ``wait``.

    Torch's ``result``, ``get_future`` and ``block_current_stream`` are not offered: the engine tells nobody when a call
    completes, so a future's callbacks would come late or never, and the outputs are the tensors that the caller has.
    """

    def __init__(
        self, work: collshim.work.Work[Any], deadline: float | None, source: Callable[[], int | None] | None = None
    ) -> None:
        self._work = work
        self._deadline = deadline
        self._source = source

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        """True, once the outputs are there; on CUDA, for what the current stream does next.

        Args:
            timeout: how long to wait; zero for the group's timeout.

        Raises:
            RuntimeError: the ranks' calls disagree, a rank did not come in time, or it failed.
        """
        self._work.wait(seconds(timeout) or self._deadline)
        return True

    def is_completed(self) -> bool:
        """Whether ``wait`` would return, or raise, at once."""
        return self._work.done()

    def is_success(self) -> bool:
        """Whether the call is complete and has not failed."""
        return self._work.done() and self._work.exception() is None

    def exception(self) -> BaseException | None:
        """What a complete call failed with; None where it did not."""
        return self._work.exception()

    def source_rank(self) -> int:
        """The rank in the group that a receive was served by, once it has been waited for.

        Raises:
            RuntimeError: not the work of a receive, or not waited for yet.
        """
        found = None if self._source is None else self._source()
        if found is None:
            refuse(RuntimeError, "source_rank may only be asked of a recv or irecv that has been waited for")
        return found

    _source_rank = source_rank


def posted(group: ProcessGroup, async_op: bool, call: Callable[[Communicator], collshim.work.Work[Any]]) -> Work | None:
    """Post a call; its work with ``async_op``, else None once it is complete."""
    work = Work(accepted(group, call), group.deadline)
    if async_op:
        return work
    work.wait()
    return None


def accepted(group: ProcessGroup, call: Callable[[Communicator], collshim.work.Work[Any]]) -> collshim.work.Work[Any]:
    """Post a call; what the engine refuses on this rank is a RuntimeError too, as what gloo refuses."""
    try:
        return call(group.communicator)
    except ArgumentError as refused:
        ours = also(type(refused), RuntimeError)
        raise ours(*refused.args) from refused.__cause__
