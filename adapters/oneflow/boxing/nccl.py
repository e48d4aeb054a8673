"""The switches of ``oneflow.boxing.nccl``; each accepts a value and has no effect."""

from __future__ import annotations

from collections.abc import Callable

_SWITCHES = (
    "allow_fuse_all_gather",
    "allow_fuse_all_reduce",
    "allow_fuse_broadcast",
    "allow_fuse_mixed_ops",
    "allow_fuse_reduce",
    "allow_fuse_reduce_scatter",
    "disable_group_boxing_by_dst_parallel",
    "enable_all_to_all",
    "enable_use_buffer_to_fuse_all_reduce",
    "enable_use_compute_stream",
    "set_fusion_max_ops_num",
    "set_fusion_threshold_mbytes",
    "set_stream_num",
)


def _switch(name: str) -> Callable[[int], None]:
    def switch(value: int = True) -> None:
        """Do nothing: the engine chooses how data travels."""

    switch.__name__ = switch.__qualname__ = name
    return switch


globals().update({name: _switch(name) for name in _SWITCHES})
