"""The groups of ``tf.raw_ops``: who is in the group of a ``group_key``, and this member's end of it.

A member is a rank of the caller's world: a process, a thread of ``collshim.launch``, or a replica. In a world of a
single rank, a member is the device that ``tf.device`` names: each logical device is a rank of a world of threads.

The first ``group_size`` members that call with a key are its group for good, in the order of their ranks. If these are
not all ranks, they find each other in the world's store, as nobody knows them in advance. Source: TensorFlow 2.21,
threads on four logical CPUs.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from collshim import world
from collshim.communicator import Communicator
from collshim.errors import CommunicationError, DeadlineError, also
from collshim.tensorflow.config.logical import logical
from collshim.tensorflow.distribute import devices, stack
from collshim.tensorflow.distribute.replica_context import poll
from collshim.tensorflow.errors import DeadlineExceededError, InternalError, invalid_argument

_STATE = "tensorflow.raw_ops"
_DEVICES = "tensorflow.raw_ops.devices"
_PLACE = "tensorflow raw ops"
_MAKING = threading.RLock()  # the threads of a process share its world, and those of a device its groups


class KeyedGroup:
    """One member's end of a group.

    Attributes:
        key: the group's key.
        size: the number of members.
        world: the member's world.
        lock: held for each call, as threads of one device may call at once.
        is_named: whether the members have a handle of the group.
        instances: the kind, dtype and shape of the first call with each instance key.
    """

    def __init__(self, own: world.World, key: int, size: int) -> None:
        self.key = key
        self.size = size
        self.world = own
        self.lock = threading.RLock()
        self.is_named = False
        self.instances: dict[str, tuple[str, str, tuple[int, ...]]] = {}
        self._communicator: Communicator | None = None
        self._is_enrolled = False

    def communicator(self, op: str, timeout: float | None) -> Communicator:
        """Return the communicator of the members, after this member has joined and all others are known.

        Raises:
            InternalError: the group has a different size, or is full.
            DeadlineExceededError: the other members did not join in time.
        """
        if self._communicator is None:
            if not self._is_enrolled:
                self._enrol(op)
                self._is_enrolled = True
            self._communicator = self.world.communicator.subgroup(self._members(op, timeout), kept=True)
        assert self._communicator is not None
        return self._communicator

    def require_size(self, op: str, size: int, expected: int) -> None:
        """Refuse a second size of the group.

        Raises:
            InternalError: the group has a different size.
        """
        if size != expected:
            raise refused(
                f"{op}: {self.member()} is joining a group with size {size}, but that group has size {expected} "
                f"(group_key={self.key})"
            )

    def member(self) -> str:
        """Describe this member."""
        return f"rank {self.world.rank} of {self.world.size}"

    def _enrol(self, op: str) -> None:
        """Enter this member into the group's list in the world's store; forget the group if that is refused."""
        store, place = self.world.store, f"{_PLACE}/{self.key}"
        try:
            if store is None:  # a part of a world
                self.require_size(op, self.size, self.world.size)
                return
            self._require_stored_size(op)
            number = store.add(f"{place}/count", 1)
            if number > self.size:
                raise refused(f"{op}: {self.member()} is joining a group that is already full (group_key={self.key})")
            store.set(f"{place}/{number}", str(self.world.rank))
        except CommunicationError:
            with _MAKING:
                self.world.state[_STATE].pop(self.key, None)
            raise

    def _require_stored_size(self, op: str) -> None:
        """Refuse a size other than the first member's; members that wait for this one learn of it."""
        store, place = self.world.store, f"{_PLACE}/{self.key}"
        try:
            self.require_size(op, self.size, int(store.compare_set(f"{place}/size", "", str(self.size))))
        except CommunicationError as error:
            store.set(f"{place}/refusal", str(error))
            raise

    def _members(self, op: str, timeout: float | None) -> list[int]:
        """Return the members' ranks in the world, in order."""
        if self.size == self.world.size:  # the first call waits for all ranks, and notices if one has left
            return list(range(self.size))
        store, place = self.world.store, f"{_PLACE}/{self.key}"
        places = [f"{place}/{number + 1}" for number in range(self.size)]
        seconds = self.world.communicator.timeout if timeout is None else timeout

        def is_settled() -> bool:
            return self.world.is_over or bool(store.check(places) or store.check([f"{place}/refusal"]))

        context = stack.current().replica_context
        (poll if context is None else context._await)(is_settled, seconds)
        if store.check(places):
            return sorted(int(store.get(place)) for place in places)
        if store.check([f"{place}/refusal"]):
            text = store.get(f"{place}/refusal").decode()
            raise refused(f"{op}: {self.member()} waits for a group that another could not join: {text}")
        raise self._late(op, int(store.add(f"{place}/count", 0)), seconds)

    def _late(self, op: str, count: int, seconds: float) -> CommunicationError:
        return also(DeadlineError, DeadlineExceededError)(
            None,
            None,
            f"{op}: {count} of the {self.size} members of group {self.key} joined within {seconds:g} s, as "
            f"{self.member()} saw: Collective has timed out waiting for other workers.",
        )


class Handle:
    """A group with the rank of each member, made by ``CollectiveInitializeCommunicator``; TensorFlow's is a tensor.

    Attributes:
        group: this member's end of the group.
        ranks: the rank that each member has passed, in the order of the members.
        calls: the number of calls so far.
    """

    def __init__(self, group: KeyedGroup, ranks: list[int], rank: int) -> None:
        self.group = group
        self.ranks = ranks
        self.calls = 0
        self._name = f"{group.key}:r{rank:04d}"

    def __repr__(self) -> str:
        return f'<tf.Tensor: shape=(), dtype=resource, value=<ResourceHandle(name="{self._name}")>>'


def group_of(op: str, key: int, size: int) -> KeyedGroup:
    """Return this member's end of the group of a key.

    Raises:
        InternalError: the group has a different size.
        InvalidArgumentError: there are fewer ranks, or devices.
    """
    own = _member()
    if size > own.size:
        raise invalid_argument(
            f"{op}: group_size is {size}, should be at most the number of ranks, or of devices: {own.size} (on rank "
            f"{own.rank})"
        )
    with _MAKING:
        groups: dict[int, KeyedGroup] = own.state.setdefault(_STATE, {})
        group = groups.setdefault(key, KeyedGroup(own, key, size))
    group.require_size(op, size, group.size)
    return group


def refused(message: str) -> CommunicationError:
    """Return the error for members whose calls do not fit together, of TensorFlow's class."""
    return also(CommunicationError, InternalError)(None, None, message)


def _member() -> world.World:
    """Return the world in which the caller is a member: its own, or, if that has a single rank, that of its device."""
    own = world.current()
    if own.size > 1:
        return own
    with _MAKING:
        worlds: Any = own.state.get(_DEVICES)
        names = [device.name for device in logical()]
        if worlds is None:
            worlds = own.state[_DEVICES] = world.local_worlds(len(names))
            weakref.finalize(own, worlds.close)
    of_device: world.World = worlds[_place(names)]
    return of_device


def _place(names: list[str]) -> int:
    """Return the number of the caller's device; that of the first one if there is none of its name."""
    name = f"/device:{devices.current().rpartition('/device:')[2]}"
    return names.index(name) if name in names else 0
