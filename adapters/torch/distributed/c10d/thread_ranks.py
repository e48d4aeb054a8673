"""torch's record of its groups: a separate one for each rank that is a thread.

torch keeps one record per process, ``torch.distributed.distributed_c10d._world``, and documents that name as an
extension point. While ranks that are threads have default groups, the name refers to the rank's own record in each of
these threads, and to the process's record in every other thread. The names of groups that
``torch.distributed._functional_collectives`` looks up are then also separate for each thread.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar
from weakref import WeakSet

import torch._C._distributed_c10d
import torch.distributed.distributed_c10d

from collshim.world import World, peek

bindings: Any = torch._C._distributed_c10d
distributed_c10d: Any = torch.distributed.distributed_c10d

_RECORD = "torch.distributed._world"
"""The key in ``World.state``."""
_ATTACH = "_maybe_attach_flight_recorder"
"""torch's function that lets its flight recorder record a new group, from torch 2.15 on."""


class _Record:
    """torch's record for one rank: the attributes of the process's record, empty.

    Attributes:
        is_left: whether the rank has left its default group, which torch may not have forgotten yet.
    """

    default_pg: Any = None
    is_left = False

    def __init__(self, kind: type) -> None:
        torchs = kind()
        self._kind = kind
        for name in _property_names(kind):
            setattr(self, name, type(getattr(torchs, name))())

    @property
    def pg_config_info(self) -> Any:
        """Each group's name, backend and ranks, for the profiler."""
        return self._kind.pg_config_info.fget(self)  # type: ignore[attr-defined]


def _property_names(kind: type) -> list[str]:
    properties = [name for name, value in vars(kind).items() if isinstance(value, property)]
    return [name for name in properties if name not in vars(_Record)]


class _Records:
    """An object that delegates to the record of the current rank, or of the process."""

    def __init__(self, of_process: Any) -> None:
        vars(self)["of_process"] = of_process

    def __getattr__(self, name: str) -> Any:
        return getattr(_record_of(peek()) or vars(self)["of_process"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_record_of(peek()) or vars(self)["of_process"], name, value)


def _record_of(world: World | None) -> _Record | None:
    return None if world is None else world.state.get(_RECORD)


class _Installed:
    """The state of the changes to torch while ranks that are threads have default groups."""

    lock = threading.Lock()
    worlds: ClassVar[WeakSet[World]] = WeakSet()
    excepthook: Callable[..., Any] = sys.excepthook
    attach: ClassVar[Callable[..., None] | None] = None


def keep_record(world: World) -> None:
    """Give torch a separate record for this rank, which is a thread."""
    with _Installed.lock:
        _restore()
        if not isinstance(distributed_c10d._world, _Records):
            _Installed.excepthook = sys.excepthook
            distributed_c10d._world = _Records(distributed_c10d._world)
            bindings._set_thread_isolation_mode(True)
            _Installed.attach = getattr(distributed_c10d, _ATTACH, None)
            if _Installed.attach is not None:
                setattr(distributed_c10d, _ATTACH, partial(_attach_unless_thread, _Installed.attach))
        world.state[_RECORD] = _Record(type(vars(distributed_c10d._world)["of_process"]))
        _Installed.worlds.add(world)


def _attach_unless_thread(attach: Callable[..., None], *args: Any) -> None:
    """Let torch's flight recorder, which has one rank per process, record a group unless the rank is a thread."""
    if _record_of(peek()) is None:
        attach(*args)


def restore_excepthook() -> None:
    """Undo torch's change of ``sys.excepthook``: an uncaught error belongs to the process, not to one rank."""
    if sys.excepthook.__module__ == distributed_c10d.__name__:
        sys.excepthook = _Installed.excepthook


def leave_record(world: World | None) -> None:
    """Mark the rank's record to be dropped once torch has forgotten its groups too."""
    record = _record_of(world)
    if record is not None:
        record.is_left = True


def restore() -> None:
    """Drop the records of ranks without a default group; after the last one, restore torch's own record."""
    with _Installed.lock:
        _restore()


def _restore() -> None:
    for world in list(_Installed.worlds):
        record = _record_of(world)
        if record is None or world.is_over or (record.is_left and record.default_pg is None):
            world.state.pop(_RECORD, None)
            _Installed.worlds.discard(world)
    records = distributed_c10d._world
    if not _Installed.worlds and isinstance(records, _Records):
        distributed_c10d._world = vars(records)["of_process"]
        bindings._set_thread_isolation_mode(False)
        if _Installed.attach is not None:
            setattr(distributed_c10d, _ATTACH, _Installed.attach)
