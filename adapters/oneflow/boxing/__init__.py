"""``oneflow.boxing``: switches of OneFlow's runtime for global tensors. They can be set, and change nothing here."""

from __future__ import annotations

from collshim.oneflow.boxing import nccl as nccl


def enable_fusion(enabled: bool = True) -> None:
    """Do nothing: there is no boxing to fuse."""
