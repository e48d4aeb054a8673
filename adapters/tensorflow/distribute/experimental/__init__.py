"""``tf.distribute.experimental``: hints to collectives, and the argument of a value function."""

from __future__ import annotations

from enum import Enum
from importlib import import_module
from typing import Any

from collshim.adapting.absent import saying
from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow.distribute.experimental import partitioners

__all__ = [
    "CollectiveCommunication",
    "CollectiveHints",
    "CommunicationImplementation",
    "CommunicationOptions",
    "ValueContext",
    "partitioners",
]


class CommunicationImplementation(Enum):
    """The implementation of collectives to prefer; a hint that changes no result, and has no effect here."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


CollectiveCommunication = CommunicationImplementation


class Options:
    """Hints to a collective; ``CommunicationOptions`` and ``CollectiveHints`` make them.

    Attributes:
        bytes_per_pack: the number of bytes to pack gradients into; it has no effect here.
        timeout_seconds: the number of seconds after which the collective raises ``tf.errors.DeadlineExceededError``;
            None for the world's deadline.
        implementation: see ``CommunicationImplementation``.

    Raises:
        ValueError: ``bytes_per_pack`` is negative, or ``implementation`` is not an implementation.
    """

    bytes_per_pack: int
    timeout_seconds: float | None
    implementation: CommunicationImplementation

    def __init__(
        self,
        bytes_per_pack: int = 0,
        timeout_seconds: float | None = None,
        implementation: CommunicationImplementation | str = CommunicationImplementation.AUTO,
    ) -> None:
        if bytes_per_pack < 0:
            raise ArgumentValueError(f"Argument `bytes_per_pack` must be >=0, Received {bytes_per_pack}.")
        self.bytes_per_pack = bytes_per_pack
        self.timeout_seconds = timeout_seconds
        self.implementation = _implementation_of(implementation)

    def merge(self, options: Options | None) -> Options:
        """Return these hints, replaced by the hints in ``options`` that are not the defaults."""
        given = Options() if options is None else options
        is_auto = given.implementation is CommunicationImplementation.AUTO
        return Options(
            given.bytes_per_pack or self.bytes_per_pack,
            self.timeout_seconds if given.timeout_seconds is None else given.timeout_seconds,
            self.implementation if is_auto else given.implementation,
        )

    def __str__(self) -> str:
        return (
            f"Options(bytes_per_pack={self.bytes_per_pack},timeout_seconds={self.timeout_seconds}, "
            f"implementation={self.implementation})"
        )

    def __repr__(self) -> str:
        return object.__repr__(self)


class CommunicationOptions(Options):
    """An ``Options(bytes_per_pack=0, timeout_seconds=None, implementation=AUTO)``, of that class, as in TensorFlow."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Options:  # type: ignore[misc]
        """Return an ``Options`` with these hints."""
        return Options(*args, **kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...


class CollectiveHints(Options):
    """An ``Options`` without an implementation, by the older name."""

    def __new__(cls, bytes_per_pack: int = 0, timeout_seconds: float | None = None) -> Options:  # type: ignore[misc]
        """Return an ``Options`` with these hints."""
        return Options(bytes_per_pack, timeout_seconds)

    def __init__(self, bytes_per_pack: int = 0, timeout_seconds: float | None = None) -> None: ...


class ValueContext:
    """The argument of ``experimental_distribute_values_from_function``'s function, which makes one replica's value."""

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self._replica_id_in_sync_group = replica_id_in_sync_group
        self._num_replicas_in_sync = num_replicas_in_sync

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas."""
        return self._num_replicas_in_sync

    @property
    def replica_id_in_sync_group(self) -> int:
        """The number of the replica that the value is for, a Python int."""
        return self._replica_id_in_sync_group

    def __str__(self) -> str:
        replica, count = self._replica_id_in_sync_group, self._num_replicas_in_sync
        return f"tf.distribute.ValueContext(replica id {replica},  total replicas in sync: {count})"


def timeout_of(options: Options | None, default: Options | None) -> float | None:
    """Return how many seconds a call may take, by its own options or else its strategy's; None without a limit."""
    for candidate in (options, default):
        if not isinstance(candidate, Options | None):
            raise ArgumentTypeError(
                f"options is a {type(candidate).__name__}, should be a tf.distribute.experimental.CommunicationOptions"
            )
        if candidate is not None and candidate.timeout_seconds is not None:
            return candidate.timeout_seconds
    return None


def _implementation_of(implementation: object) -> CommunicationImplementation:
    if isinstance(implementation, CommunicationImplementation):
        return implementation
    if not isinstance(implementation, str):
        raise ArgumentValueError(
            "Argument `implementation` must be instance of `tf.distribute.experimental.CommunicationImplementation`."
        )
    if implementation.upper() not in CommunicationImplementation.__members__:
        raise ArgumentValueError(f"{implementation.upper()!r} is not a valid CommunicationImplementation")
    return CommunicationImplementation[implementation.upper()]


_MODULES = {
    "CentralStorageStrategy": "collshim.tensorflow.distribute.central_storage",
    "MultiWorkerMirroredStrategy": "collshim.tensorflow.distribute.older_strategies",
    "TPUStrategy": "collshim.tensorflow.distribute.older_strategies",
    "PreemptionCheckpointHandler": "collshim.tensorflow.distribute.failure_handling",
    "TerminationConfig": "collshim.tensorflow.distribute.failure_handling",
}
_absent = saying(__name__)


def __getattr__(name: str) -> Any:
    """Return a strategy by its older name, or what saves before a stop, which needs checkpoints."""
    return getattr(import_module(_MODULES[name]), name) if name in _MODULES else _absent(name)
