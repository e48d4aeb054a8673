"""``mindspore.mint``: its collectives (source: MindSpore 2.10.0)."""

from collshim.mindspore.mint import distributed

__all__ = ["distributed"]
