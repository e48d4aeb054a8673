"""Puts the ranks' calls side by side: a row for each collective of a group, and one for each message."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from collshim.calls.agreement import disagreement, objection_to_pair
from collshim.calls.call import in_the_world
from collshim.calls.collective import SEND
from collshim.logs.reading import LoggedCall, LoggedGroup, LoggedRun

UNFINISHED = ("waiting", "posted")
FAILED = ("failed", "refused")


@dataclass
class Row:
    """One call of all its ranks.

    Attributes:
        group: the group.
        number: the number of a collective in its group; of a message, that on the rank of its first post.
        ranks: the ranks in the world that should have made it.
        steps: what each of them did, by rank; without those that did not make it.
        unlogged: the ranks that have no file.
        mismatch: how the calls disagree, in a sentence; "" if they agree.
    """

    group: LoggedGroup
    number: int
    ranks: tuple[int, ...]
    steps: Mapping[int, LoggedCall]
    unlogged: tuple[int, ...]
    mismatch: str = ""

    @property
    def first(self) -> LoggedCall:
        """The first post."""
        return min(self.steps.values(), key=lambda step: step.time)

    @property
    def shown(self) -> LoggedCall:
        """The call that stands for all: of a message the send, else the first post."""
        sends = (step for step in self.steps.values() if step.call.collective is SEND)
        return next(sends, self.first)

    @property
    def is_message(self) -> bool:
        """Whether it is a message."""
        return self.first.kind == "message"

    @property
    def absent(self) -> list[int]:
        """The ranks that should have made it, have a file, and did not."""
        return [rank for rank in self.ranks if rank not in self.steps and rank not in self.unlogged]

    def ranks_in(self, states: tuple[str, ...]) -> list[int]:
        """Return the ranks whose call is in one of these states."""
        return [rank for rank, step in self.steps.items() if step.state in states]

    @property
    def problem(self) -> str:
        """Return "absent", "mismatch", "failed" or "unfinished"; "" if the row is fine."""
        if self.absent:
            return "absent"
        if self.mismatch:
            return "mismatch"
        return "failed" if self.ranks_in(FAILED) else "unfinished" if self.ranks_in(UNFINISHED) else ""


def merged(run: LoggedRun) -> dict[str, list[Row]]:
    """Return the rows of each group, by its key, in the order of the calls."""
    found = dict[str, list[Row]]()
    for key, group in run.groups.items():
        rows = [*_collectives(run, key, group), *_messages(run, key, group)]
        if rows:
            found[key] = sorted(rows, key=lambda row: row.first.time)
    return found


def _unlogged(run: LoggedRun, ranks: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(rank for rank in ranks if rank not in run.logged)


def _collectives(run: LoggedRun, key: str, group: LoggedGroup) -> Iterator[Row]:
    by_number = defaultdict[int, dict[int, LoggedCall]](dict)
    for rank in group.ranks:
        for step in run.steps.get((key, rank), []):
            if step.kind == "call":
                by_number[step.number][rank] = step
    for number, steps in sorted(by_number.items()):
        row = Row(group, number, group.ranks, steps, _unlogged(run, group.ranks))
        if len(steps) == len(group.ranks):
            text = disagreement([steps[rank].call for rank in group.ranks])
            if text is not None:
                row.mismatch = text.partition("\n")[0].partition(": ")[2] + in_the_world(group.ranks)
        yield row


def _messages(run: LoggedRun, key: str, group: LoggedGroup) -> Iterator[Row]:
    """Match the n-th send from one rank to another with the n-th recv there, tag by tag."""
    pairs = defaultdict[tuple[int, int, int], tuple[list[LoggedCall], list[LoggedCall]]](lambda: ([], []))
    for place, rank in enumerate(group.ranks):
        for step in run.steps.get((key, rank), []):
            if step.kind != "message":
                continue
            is_send = step.call.collective is SEND
            peer = step.source if step.call.root is None else step.call.root
            if peer is None:  # a recv from any rank that has got nothing
                yield Row(group, step.number, (rank,), {rank: step}, ())
            elif is_send:
                pairs[place, peer, step.call.tag][0].append(step)
            else:
                pairs[peer, place, step.call.tag][1].append(step)
    for (source, to, _), (sends, recvs) in pairs.items():
        yield from _paired(run, group, (group.ranks[source], group.ranks[to]), sends, recvs)


def _paired(
    run: LoggedRun, group: LoggedGroup, ranks: tuple[int, int], sends: list[LoggedCall], recvs: list[LoggedCall]
) -> Iterator[Row]:
    for number in range(max(len(sends), len(recvs))):
        send, recv = (steps[number] if number < len(steps) else None for steps in (sends, recvs))
        sides = {rank: step for rank, step in zip(ranks, (send, recv), strict=True) if step is not None}
        first = min(sides.values(), key=lambda step: step.time)
        row = Row(group, first.number, tuple(dict.fromkeys(ranks)), sides, _unlogged(run, ranks))
        if send is not None and recv is not None:
            objection = objection_to_pair(send.call, recv.call, group.ranks)
            row.mismatch = "" if objection is None else str(objection).partition("\n")[0]
        yield row
