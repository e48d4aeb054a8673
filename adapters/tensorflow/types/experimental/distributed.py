"""``tf.types.experimental.distributed``: classes for ``isinstance``, which have no objects of their own.

Source: TensorFlow 2.21.
"""

from __future__ import annotations

from typing import Any

from collshim.adapting.absent import saying
from collshim.tensorflow.distribute import values
from collshim.tensorflow.distributed_variables import MirroredVariable

__all__ = ["Mirrored", "PerReplica"]


class _Counts(type):
    """A metaclass that counts the objects of other classes as objects of this one."""

    _counted: tuple[type, ...]

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls._counted)


class PerReplica(values.DistributedValues, metaclass=_Counts):
    """The values of replicas that may differ."""

    _counted = (values.PerReplica,)


class Mirrored(values.DistributedValues, metaclass=_Counts):
    """The values of replicas that are equal, and variables whose copies are."""

    _counted = (values.Mirrored, MirroredVariable)


__getattr__ = saying(__name__)
