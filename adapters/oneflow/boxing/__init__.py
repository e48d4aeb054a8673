"""``oneflow.boxing``: switches of OneFlow's runtime for global tensors. They are accepted, and have no effect here."""

from __future__ import annotations

from collshim.oneflow.boxing import nccl as nccl


def enable_fusion(enabled: bool = True) -> None:
    """Do nothing: there is no boxing to fuse."""
