"""Strategies of ``tf.distribute.experimental`` whose arguments differ from those of the newer ones.

Source: TensorFlow 2.21.
"""

from __future__ import annotations

from typing import Any

from collshim.adapting.absent import saying
from collshim.tensorflow.distribute import multi_worker, tpu_strategy
from collshim.tensorflow.distribute.experimental import CommunicationImplementation, Options


class _IncludesNewer(type):
    """A metaclass by which strategies of the newer class count as strategies of the older one."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__mro__[1])


class MultiWorkerMirroredStrategy(multi_worker.MultiWorkerMirroredStrategy, metaclass=_IncludesNewer):
    """A ``tf.distribute.MultiWorkerMirroredStrategy``, by its older name and arguments.

    Args:
        communication: the implementation of collectives to prefer; it has no effect here.
        cluster_resolver: see ``tf.distribute.MultiWorkerMirroredStrategy``.

    Raises:
        ValueError: ``communication`` is not an implementation.
    """

    def __init__(
        self,
        communication: CommunicationImplementation | str = CommunicationImplementation.AUTO,
        cluster_resolver: Any = None,
    ) -> None:
        super().__init__(cluster_resolver, Options(implementation=communication))


class TPUStrategy(tpu_strategy.TPUStrategy):
    """A ``tf.distribute.TPUStrategy``, by its older name and arguments.

    Args:
        tpu_cluster_resolver: has no effect.
        device_assignment: must be None.

    Raises:
        ValueError: an assignment is requested.
    """

    def __init__(self, tpu_cluster_resolver: Any = None, device_assignment: Any = None) -> None:
        super().__init__(tpu_cluster_resolver, device_assignment)


__getattr__ = saying(__name__)  # `refuse_everywhere` has run before this module is loaded
