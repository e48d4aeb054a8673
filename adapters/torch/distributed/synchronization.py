"""barrier. Conventions of torch 2.13.0."""

from __future__ import annotations

from datetime import timedelta

from collshim.torch.distributed.arguments import seconds
from collshim.torch.distributed.membership import Group, group_of, outside
from collshim.torch.distributed.work import Work, accepted


def barrier(
    group: Group = None,
    async_op: bool = False,
    device_ids: list[int] | None = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Returns when every rank of the group has called it.

    Args:
        group: None for all ranks.
        async_op: whether to return at once.
        device_ids: accepted as torch does; no device is needed for this.
        timeout: how long to wait; None for the group's timeout.

    Returns:
        None; with ``async_op`` a Work, whose ``wait()`` is True when every rank has come. None, with a UserWarning,
        on a rank outside the group.

    Raises:
        TypeError: ``timeout`` is no timedelta.
        ValueError: no default group yet.
        RuntimeError: a rank did not come, or called something else.
    """
    ranks = group_of(group)
    if ranks is None:
        outside("barrier")
        return None
    deadline = seconds(timeout) or ranks.deadline
    work = Work(accepted(ranks, lambda comm: comm.barrier()), deadline)
    if async_op:
        return work
    work.wait()
    return None
