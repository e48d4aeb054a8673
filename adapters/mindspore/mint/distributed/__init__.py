"""``mindspore.mint.distributed``: torch's spelling, with groups by name (source: MindSpore 2.10.0).

Tensors are written in place; None comes back, or a handle with ``async_op``, and ``recv`` gives 0. Roots and peers are
global ranks. Every rank gives full lists, to ``gather`` and ``scatter`` too. No gradient flows. A ``Tensor`` that
something comes into may be read without ``wait``: whatever reads it waits.
"""

from collshim.mindspore.mint.distributed import distributed as distributed
from collshim.mindspore.mint.distributed.distributed import *  # noqa: F403  # its functions stand here too

__all__ = ["distributed"]
__all__ += distributed.__all__
