"""``tf.tpu``: the functions that programs call before they make a ``TPUStrategy``."""

from __future__ import annotations

from typing import NamedTuple

from collshim.adapting.absent import saying
from collshim.tensorflow.tpu import experimental

__all__ = ["XLAOptions", "experimental"]


class XLAOptions(NamedTuple):
    """Hints to a compiler, for ``tf.distribute.RunOptions``; they have no effect here."""

    use_spmd_for_xla_partitioning: bool = True
    enable_xla_dynamic_padder: bool = True
    use_shardy_partitioner: bool = False


__getattr__ = saying(__name__, "there are no TPUs here")
