"""Groups of ranks, and the communicator of a group (MegEngine 1.13.0, ``megengine.distributed.group``)."""

from __future__ import annotations

from collections.abc import Sequence, Sized

from collshim.communicator import Communicator
from collshim.errors import ArgumentTypeError, ArgumentValueError, also
from collshim.megengine.distributed._membership import joined, membership


class Group:
    """Ranks of the world in a fixed order: the first is the root, and parts are joined and split in this order.

    Creating a group sends nothing, and only the group's own ranks create it. Groups of the same ranks in the same order
    are the same group.

    Args:
        proc_ranks: global ranks, including the caller's; empty for a group whose ranks ``reset`` sets later.
    """

    def __init__(self, proc_ranks: Sequence[int]) -> None:
        self._ranks: tuple[int, ...] | None = None
        self._stream = 1
        if not isinstance(proc_ranks, Sized):
            raise ArgumentTypeError(
                f"object of type {type(proc_ranks).__name__!r} has no len(): "
                f"group: ranks are {proc_ranks!r}, should be a list of ints"
            )
        if len(proc_ranks) > 0:
            self.reset(proc_ranks)

    def reset(self, proc_ranks: Sequence[int]) -> None:
        """Validate ranks by ``check``, and replace the group's ranks by them."""
        self.check(proc_ranks)
        member = joined()
        self._ranks, self._stream = tuple(proc_ranks), member.next_stream
        member.next_stream += 1

    def check(self, proc_ranks: Sequence[int]) -> None:
        """Validate ranks for a group.

        Raises:
            AssertionError: ``init_process_group`` was not called; a rank is not an ``int`` (NumPy's integers are not),
                is outside the world, or occurs twice; the caller's own rank is missing.
        """
        size, own = joined().world.size, joined().world.rank
        ranks = list(proc_ranks)
        if not all(isinstance(rank, int) for rank in ranks):
            raise also(ArgumentTypeError, AssertionError)(f"group: ranks are {ranks!r}, each should be an int")
        if not all(0 <= rank < size for rank in ranks) or len(set(ranks)) != len(ranks):
            raise _unfit(f"group: ranks are {ranks}, should be different ones from 0 to {size - 1} (rank {own})")
        if own not in ranks:
            raise _unfit(f"group: ranks are {ranks}, should contain the caller's (rank {own} of {size})")

    @property
    def proc_ranks(self) -> list[int] | None:
        """The global ranks in the group's order; None if the group has none yet."""
        if self is not WORLD:
            return None if self._ranks is None else list(self._ranks)
        member = membership()
        return None if member is None else list(range(member.world.size))

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self._required_ranks())

    @property
    def key(self) -> str:
        """The ranks as text, such as ``"3,1"``."""
        return ",".join(map(str, self._required_ranks()))

    @property
    def rank(self) -> int:
        """This rank's position in the group; 0 is the root."""
        ranks = self._required_ranks()
        own = joined().world.rank
        if own not in ranks:
            raise _unfit(f"group: ranks are {list(ranks)}, should contain the caller's (rank {own})")
        return ranks.index(own)

    @property
    def comp_node(self) -> str:
        """MegEngine's name for this rank's device and the group's stream, such as ``"xpu0:1"``; it is only a name."""
        self._required_ranks()
        member = joined()
        return f"{member.device_type}{member.device}:{self._stream}"

    @property
    def is_single_machine(self) -> bool:
        """Whether all ranks run on one machine, according to ``launcher`` or to the number of ranks per machine."""
        ranks = self._required_ranks()
        machine_ranks = joined().machine_ranks
        if machine_ranks is not None:
            return set(ranks) <= set(machine_ranks)
        local_size = joined().world.local_size
        return len({rank // local_size for rank in ranks}) == 1

    def _required_ranks(self) -> tuple[int, ...]:
        ranks = self.proc_ranks
        if ranks is None:
            joined(TypeError)
            raise also(ArgumentTypeError, TypeError)(
                "object of type 'NoneType' has no len(): the group has no ranks yet"
            )
        return tuple(ranks)


WORLD = Group([])
"""All ranks in order. Ranks that are threads share this object: each use looks up the caller's world."""


def communicator(group: Group | None, attribute: str | None = None) -> Communicator:
    """Return the communicator of ``group``.

    Args:
        group: the user's group.
        attribute: the attribute that MegEngine's function reads first from the group; None if it checks the type first.
            This determines which exception is raised.

    Raises:
        AssertionError: ``group`` is not a ``Group``, or ``init_process_group`` was not called. With an ``attribute``,
            these are AttributeError and TypeError.
    """
    if not isinstance(group, Group):
        raise _no_group(group, attribute)
    member = joined(AssertionError if attribute is None else TypeError)
    return member.world.communicator if group is WORLD else member.communicator(group._required_ranks())


def _no_group(group: object, attribute: str | None) -> Exception:
    sentence = f"group is {group!r}, should be a Group: new_group makes one from a list"
    member = membership()
    place = f"({member.where()})" if member is not None else "(no process group yet)"
    if attribute is None or (group is None and attribute == "size"):
        return also(ArgumentTypeError, AssertionError)(f"{sentence} {place}")
    prefix = f"'{type(group).__name__}' object has no attribute '{attribute}'"
    return also(ArgumentTypeError, AttributeError)(f"{prefix}: {sentence} {place}")


def _unfit(text: str) -> Exception:
    return also(ArgumentValueError, AssertionError)(text)
