"""``mindspore.mint.distributed``: torch's functions, with groups by name (source: MindSpore 2.10.0).

Results are written in place. The functions return None, or a handle with ``async_op``; ``recv`` returns 0. Roots and
peers are global ranks. Every rank passes full lists, even to ``gather`` and ``scatter``. No gradient flows. A
``Tensor`` that is being received may be read without ``wait``, because the read waits.
"""

from collshim.mindspore.mint.distributed import distributed as distributed
from collshim.mindspore.mint.distributed.distributed import *  # noqa: F403  # its functions are also here

__all__ = ["distributed"]
__all__ += distributed.__all__
