"""MegEngine's collectives: ``import collshim.megengine as mge`` (source: MegEngine 1.13.0, run and read).

``mge.distributed`` has the process group, ``mge.functional.distributed`` the twelve operations, ``mge.autodiff``
``GradManager``. Tensors are torch tensors, NumPy arrays or anything with DLPack; what is computed between the
operations is computed with them, so ``mge.tensor`` and ``mge.functional.add`` are not here.

What differs from its neighbours in collshim:

* A group's order is kept, and its first rank is the root; there is no argument for one.
* Gathers and scatters take an ``axis`` and join along it; nothing is stacked. Axes are counted from the front.
* ``reduce_sum`` and ``gather`` return None off the root, ``remote_send`` everywhere. ``broadcast`` and ``scatter`` do
  not read what the others give.
* Every call returns when it has its result, but ``remote_send``, which returns at once.
* ``all_reduce_max`` and ``all_reduce_min`` give every tied rank the whole gradient.
* Without ``init_process_group`` nothing communicates, also on a rank that ``collshim.launch`` started: there is no
  world of one rank to fall back to.

What differs from MegEngine:

* Every dtype that torch moves is taken; MegEngine takes int8, uint8, int32, float16 and float32 and fails on others.
* An array without elements is refused with RuntimeError, where MegEngine has an error of its own, later.
* NumPy arrays are taken, and come back as such.
* Where MegEngine returns wrong data (negative axes of ``reduce_scatter_sum``, ``scatter`` and ``all_to_all``) or
  hangs (a rank that does not join a backward), there is an error. A group with a rank twice is refused.
* A ``scatter`` that cannot be cut is refused on the root, which alone has its shape; MegEngine informs all ranks first.
* A refused ``init_process_group`` leaves no trace; MegEngine then calls itself distributed.
* In a world that this rank has already, ``get_client`` needs a ``Server`` that the user started.
* Streams in device names are accepted and left to torch; ``backend`` is a name.
* Gradients of gradients are not recorded, and ``GradManager`` objects are not joined with ``|``.
"""

from __future__ import annotations

import collshim.megengine.distributed.functional  # noqa: F401  # so that mge.distributed.functional is there
from collshim.megengine import autodiff, distributed, functional
from collshim.megengine._absent import saying

__all__ = ["autodiff", "distributed", "functional"]

__getattr__ = saying(__name__, "distributed, functional.distributed and autodiff.GradManager")
