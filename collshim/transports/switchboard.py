"""What the threads of a world share: who failed or left, where each waits, and the calls that not all have come to."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass

from collshim.errors import BrokenCommunicatorError, CommunicationError, PeerError
from collshim.transports.meeting import Meeting
from collshim.transports.seat import Seat
from collshim.transports.ticket import Waited


class Switchboard:
    """What all groups of one in-process world share: who failed, who has left, and where each rank waits."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.lock = threading.RLock()
        self.waiting_in: list[Waited | None] = [None] * size
        self.gave_up: list[Waited | None] = [None] * size
        self.left: dict[int, str] = {}
        self._groups: weakref.WeakSet[LocalGroup] = weakref.WeakSet()
        self._registry: dict[str, LocalGroup] = {}

    def group(self, ranks: tuple[int, ...], key: str) -> LocalGroup:
        """The group of these global ranks under this key, made by whoever comes first."""
        with self.lock:
            group = self._registry.get(key)
            if group is None:
                group = self._registry[key] = LocalGroup(self, ranks, key)
                self._groups.add(group)
            return group

    def forget(self, key: str) -> None:
        """Drop a group that its ranks have closed."""
        with self.lock:
            self._registry.pop(key, None)

    def leave(self, rank: int, why: str) -> None:
        """Global ``rank`` comes to no further call: ranks that wait for it, now or later, are told ``why`` at once."""
        with self.lock:
            self.left[rank] = why
            groups = list(self._groups)
        for group in groups:
            group.told_left(rank)

    def whereabouts(self, rank: int) -> str:
        """Where global ``rank`` is, for error texts."""
        if rank in self.left:
            return self.left[rank]
        call, lost = self.waiting_in[rank], self.gave_up[rank]
        if call is not None:
            return f"waits in {call}"
        return f"gave up {lost}" if lost is not None else "is in no collective"


@dataclass
class _Letter:
    """A send or a recv that waits for its counterpart."""

    meeting: Meeting
    peer: int | None
    tag: int


class LocalGroup:
    """What the ranks of one group share: the calls that not all of them have come to yet."""

    def __init__(self, board: Switchboard, ranks: tuple[int, ...], key: str) -> None:
        self.board = board
        self.ranks = ranks
        self.key = key
        self.size = len(ranks)
        self.everybody = range(self.size)
        self.lock = threading.RLock()
        self.broken: CommunicationError | None = None
        self._open: dict[int, Meeting] = {}
        self._letters: dict[str, list[list[_Letter]]] = {
            "send": [[] for _ in ranks],
            "recv": [[] for _ in ranks],
        }
        self._closed: set[int] = set()

    def join(self, sequence: int, seat: Seat) -> Meeting:
        """Take a seat in the meeting of the ``sequence``-th collective; the last to come starts the work."""
        with self.lock:
            self._refuse_if_broken()
            meeting = self._open.get(sequence)
            if meeting is None:
                meeting = self._open[sequence] = Meeting(self, self.everybody)
            complete = meeting.take(seat.rank, seat)
            if complete:
                del self._open[sequence]
        self._start(meeting, complete)
        return meeting

    def deliver(self, seat: Seat, peer: int | None) -> Meeting:
        """Match a send with the oldest recv that awaits it, or the other way round."""
        counterpart = "recv" if seat.call.op == "send" else "send"
        with self.lock:
            self._refuse_if_broken()
            found = self._counterpart(counterpart, seat, peer)
            place = 0 if seat.call.op == "send" else 1
            if found is None:
                meeting = Meeting(self, (seat.rank, peer) if place == 0 else (peer, seat.rank))
                self._letters[seat.call.op][_at(seat, peer)].append(_Letter(meeting, _other(seat, peer), seat.call.tag))
            else:
                meeting = found.meeting
            complete = meeting.take(place, seat)
        self._start(meeting, complete)
        return meeting

    def _counterpart(self, op: str, seat: Seat, peer: int | None) -> _Letter | None:
        boxes = self._letters[op]
        box = boxes[seat.rank] if op == "send" else boxes[peer or 0]
        for letter in box:
            fits = letter.peer == peer or peer is None if op == "send" else letter.peer in (None, seat.rank)
            if fits and letter.tag == seat.call.tag:
                box.remove(letter)
                return letter
        return None

    def _start(self, meeting: Meeting, complete: bool) -> None:
        if complete:
            meeting.begin()
        elif self.board.left or self._closed:
            self._fail_if_hopeless(meeting)

    def fail(self, failure: CommunicationError) -> None:
        """End this group: everybody who waits in it, or comes later, gets ``failure``."""
        with self.lock:
            self.broken = self.broken or failure
            pending = self._unfinished()
            self._open.clear()
            for boxes in self._letters.values():
                for box in boxes:
                    box.clear()
        for meeting in pending:
            meeting.fail(failure)

    def told_left(self, rank: int) -> None:
        """A global rank has left: the meetings that miss it can never be complete."""
        for meeting in self._unfinished():
            self._fail_if_hopeless(meeting)

    def close(self, rank: int) -> None:
        """One rank of the group closes its end; when all have, the group is forgotten."""
        with self.lock:
            self._closed.add(rank)
            if len(self._closed) == self.size:
                self.board.forget(self.key)
        self.told_left(self.ranks[rank])

    def _unfinished(self) -> list[Meeting]:
        with self.lock:
            letters = [letter.meeting for boxes in self._letters.values() for box in boxes for letter in box]
            return [*self._open.values(), *letters]

    def _fail_if_hopeless(self, meeting: Meeting) -> None:
        gone = [rank for rank in meeting.missing() if self._is_gone(rank)]
        anybody = meeting.could_come()
        if anybody and all(self._is_gone(rank) for rank in anybody):
            gone = anybody
        if gone:
            self.fail(PeerError(meeting.who_did_not_come(gone)))

    def _is_gone(self, rank: int) -> bool:
        return self.ranks[rank] in self.board.left or rank in self._closed

    def _refuse_if_broken(self) -> None:
        if self.broken is not None:
            raise BrokenCommunicatorError(f"this communicator was ended by an earlier failure: {self.broken}")


def _at(seat: Seat, peer: int | None) -> int:
    """The box a letter lies in: that of the receiver."""
    return peer if seat.call.op == "send" and peer is not None else seat.rank


def _other(seat: Seat, peer: int | None) -> int | None:
    """Whom a letter names: a send its sender, a recv the source that it awaits."""
    return seat.rank if seat.call.op == "send" else peer
