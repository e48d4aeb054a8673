"""``mindspore.common.tensor``: ``Tensor``."""

from collshim.mindspore.tensor import Tensor

__all__ = ["Tensor"]
