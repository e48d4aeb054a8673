"""Descriptions of operations, equal if their settings are equal (``megengine.core.ops.builtin``)."""

from __future__ import annotations

import enum
from typing import Any

from collshim.adapting.absent import saying

__all__ = ["CollectiveComm", "ParamPackConcat", "ParamPackSplit", "RemoteRecv", "RemoteSend"]


class _Described:
    """An operation with its settings by name."""

    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self).__name__, repr(sorted(vars(self).items()))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in vars(self).items())})"


class CollectiveComm(_Described):
    """A collective."""

    class Mode(enum.Enum):
        """The kind of collective."""

        REDUCE_SUM = 0
        BROADCAST = 1
        ALL_GATHER = 2
        REDUCE_SCATTER_SUM = 3
        ALL_REDUCE_SUM = 4
        ALL_REDUCE_MAX = 5
        ALL_REDUCE_MIN = 6
        ALL_REDUCE_PROD = 7
        GATHER = 8
        SCATTER = 9
        ALL_TO_ALL = 10


class RemoteSend(_Described):
    """The operation of ``functional.distributed.remote_send``."""


class RemoteRecv(_Described):
    """The operation of ``functional.distributed.remote_recv``."""


class ParamPackConcat(_Described):
    """The operation of ``distributed.helper.param_pack_concat``."""


class ParamPackSplit(_Described):
    """The operation of ``distributed.helper.param_pack_split``."""


__getattr__ = saying(__name__)
