"""Finds the line that explains why a run on several ranks computes something different from one rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from collshim.invariance.culprit import Culprit, cutting
from collshim.invariance.flow import Flow, cut_by
from collshim.invariance.records import BACKWARD, FORWARD, Event, RankRecord
from collshim.invariance.timeline import Timeline
from collshim.invariance.verdict import EXTRA, NO_GRADIENT, NOT_HELD, STARTS, Comparison, Finding


class Search:
    """The search for culprits in two traced runs.

    Args:
        comparison: the comparison of the traced runs.
        one: the record of the one-rank run.
        ranks: the records of the run on several ranks.
        mesh: the sizes of the mesh's axes, by name.
    """

    def __init__(
        self, comparison: Comparison, one: RankRecord, ranks: Sequence[RankRecord], mesh: Mapping[str, int]
    ) -> None:
        self._comparison = comparison
        self._one, self._ranks = one, ranks
        self._flow = Flow(one, ranks, mesh, comparison.tolerance)

    def culprits(self) -> list[Culprit]:
        """Return the lines that explain the differences, each with its parameters; the first explains most."""
        wrong = [finding for finding in self._comparison.wrong if finding.kind not in (EXTRA, NOT_HELD)]
        if not wrong and self._comparison.wrong:  # a different model, which no line explains
            return []
        start = self._start(wrong)
        if start is not None:
            return [start]
        found = dict[tuple[str, str], Culprit]()
        left, small = list[Finding](), [finding for finding in wrong if self._is_small(finding)]
        for finding in wrong if len(small) == len(wrong) else [one for one in wrong if one not in small]:
            culprit = Timeline(finding, self._comparison, self._one, self._ranks, self._flow).culprit()
            if culprit is None:
                left.append(finding)
            else:
                found.setdefault((culprit.site, culprit.why), culprit).parameters.append(finding.name)
        in_order = sorted(found.values(), key=lambda one: -len(one.parameters))
        if not wrong and self._comparison.draws:
            return [self._dropout()]
        if left or not wrong:
            names = [finding.name for finding in left]
            culprit = self._forward(names) or (self._backward(left) if left else None)
            if culprit is not None:
                culprit.parameters = names
                in_order.insert(0, culprit)
        if in_order and len(small) < len(wrong):
            in_order[0].parameters += [finding.name for finding in small]
        return in_order

    def _is_small(self, finding: Finding) -> bool:
        """Return whether a parameter is a single number: any number is a multiple of it, so a factor means nothing."""
        gradients = [own.gradient for own in self._one.parameters if own.name == finding.name and own.is_compared]
        return any(gradient is not None and gradient.numel() == 1 for gradient in gradients)

    def _dropout(self) -> Culprit:
        sites, text = next(iter(self._comparison.draws.items()))
        fix = "draw the masks from a generator whose seed is the same on all ranks that hold the activation"
        return Culprit(sites, "dropout", text, fix, "R→V")

    def _start(self, wrong: Sequence[Finding]) -> Culprit | None:
        """Explain parameters that begin with different values."""
        names = [finding.name for finding in wrong if finding.kind == STARTS]
        if not names:
            return None
        fix = "give all ranks the same seed before the model is built, or broadcast its parameters from rank 0"
        for turn, (sites, seed) in enumerate(self._ranks[0].seeds):
            for rank, record in enumerate(self._ranks[1:], 1):
                if turn < len(record.seeds) and record.seeds[turn] != (sites, seed):
                    why = f"seeds rank 0 with {seed} and rank {rank} with {record.seeds[turn][1]}"
                    return Culprit(sites, "manual_seed", why, fix, "V", names)
        for number, event in enumerate(self._flow.events):
            if event.phase == FORWARD and event.is_random and self._flow.is_wrong(number):
                return Culprit(event.sites, event.name, "draws different numbers on each rank", fix, "V", names)
        why = "the ranks start with different values"
        return Culprit(self._one.backward, "the parameters", why, fix, "V", names)

    def _forward(self, names: list[str]) -> Culprit | None:
        """Explain a forward pass that goes wrong."""
        flow = self._flow
        number = flow.first_wrong()
        if number is None:
            return self._lost_gradient(names)
        root = flow.events[number].sites[0]
        if self._joins_shards(number) and (mover := flow.reordering(number)) is not None:
            event = flow.events[mover]
            why = f"puts the parts in a different order than {flow.events[number].name} expects, at {root}"
            fix = "put the parts in the order of the ranks, as on one rank, both before sending and after receiving"
            return Culprit(event.sites, event.name, why, fix, "V", names, also=[root])
        number = flow.follow_moves(number)
        culprit = self._wrong_event(number, names)
        if root != culprit.site:
            culprit.also.append(root)
        return culprit

    def _wrong_event(self, number: int, names: list[str]) -> Culprit:
        flow, event = self._flow, self._flow.events[number]
        if event.is_random:
            fix = "draw them from a generator whose seed is the same on all ranks that hold the tensor"
            return Culprit(event.sites, event.name, "draws different random numbers on each rank", fix, "R→V", names)
        letters = [flow.letter(maker) for maker in event.inputs]
        if event.is_collective:
            return self._wrong_collective(event, letters, names)
        if (added := self._replicated_beside_shard(event)) is not None:
            why = f"adds {added}, which every rank holds (R), to a part of a sum (P): the sum counts it once per rank"
            return Culprit(event.sites, event.name, why, "add it after the sum over the ranks", "R+P", names)
        if "P" in letters:
            why = "uses a partial result (P) as if it were the complete one"
            fix = "sum it over the ranks first (all_reduce, P→R), and add a bias or anything else only after that"
            return Culprit(event.sites, event.name, why, fix, "P", names)
        if "V" in letters:
            why = "uses only this rank's shard (V) to compute a value that depends on the whole tensor"
            fix = "compute it from all shards: sum its statistics over the ranks (all_reduce), or gather first (V→R)"
            return Culprit(event.sites, event.name, why, fix, "V", names)
        why = "returns a result that the one-rank run does not have"
        fix = "check its inputs: the rank, the world's size, the part of the batch"
        return Culprit(event.sites, event.name, why, fix, "", names)

    def _joins_shards(self, number: int) -> bool:
        """Return whether an event needs parts in a certain order: a collective, or a computation on several shards."""
        flow, event = self._flow, self._flow.events[number]
        wholes = [self._one.parameters[parameter].name for parameter in event.parameters]
        held = [piece for name in wholes for piece in self._comparison.pieces.of.get(name, [])]
        shards = [maker for maker in event.inputs if flow.letter(maker) in ("V", "")]
        return event.is_collective or len(shards) > 1 or not all(piece.is_whole for piece in held)

    def _replicated_beside_shard(self, event: Event) -> str | None:
        """Return the name of a whole parameter that the event uses together with a parameter in shards; else None."""
        names = [self._one.parameters[number].name for number in event.parameters]
        held = {name: [piece.is_whole for piece in self._comparison.pieces.of.get(name, [])] for name in names}
        whole = [name for name, pieces in held.items() if pieces and all(pieces)]
        return whole[0] if whole and any(pieces and not any(pieces) for pieces in held.values()) else None

    def _wrong_collective(self, event: Event, letters: Sequence[str], names: list[str]) -> Culprit:
        came = next(filter(None, letters), "")
        why = f"over ranks {list(event.ranks)} returns no tensor that the one-rank run has"
        if event.name.startswith(("all_reduce", "reduce")) and came in ("R", "V"):
            why = f"reduces a tensor that is {'the same on every rank (R)' if came == 'R' else 'a shard (V)'}"
        return Culprit(
            event.sites, event.name, why, "check its group, its operation and the order of the ranks", came, names
        )

    def _lost_gradient(self, names: list[str]) -> Culprit | None:
        """Explain a gradient that an operation cuts off on several ranks, but not on one."""
        lost = [finding for finding in self._comparison.wrong if finding.kind == NO_GRADIENT and finding.ranks]
        if not lost:
            return None
        needing = {event.key for event in self._one.events if event.needs_grad}
        known = {event.key for event in self._one.events}
        events = self._ranks[lost[0].ranks[0]].events
        for event in events:
            has_gradient = any(events[maker].needs_grad for maker in event.inputs)
            is_new = event.key in needing or event.key not in known
            if event.phase == FORWARD and has_gradient and not event.needs_grad and is_new and not event.is_collective:
                why, fix = (
                    "cuts off the gradient on several ranks, but not on one rank",
                    "do not detach it or leave autograd",
                )
                return Culprit(event.sites, event.name, why, fix, "", names)
        return None

    def _backward(self, wrong: Sequence[Finding]) -> Culprit | None:
        """Explain gradients that are wrong before they are reduced."""
        return self._cut_by_collective() or self._never_summed() or self._transition() or self._unknown(wrong)

    def _cut_by_collective(self) -> Culprit | None:
        """Find a collective that cuts the gradient of its input."""
        found = cut_by(self._ranks[0])
        return None if not found else cutting(*found[0])

    def _never_summed(self) -> Culprit | None:
        """Find the last replicated tensor of the forward pass that is used with shards, so its gradient is partial."""
        flow = self._flow
        for number in reversed(flow.forward()):
            if flow.letter(number) != "R" or flow.gradient_letter(number) != "P" or not flow.events[number].inputs:
                continue
            users = [user for user in flow.users.get(number, []) if flow.letter(user) in ("V", "P")]
            if users:
                user = flow.events[users[0]]
                why = "takes a replicated tensor (R): each rank has a part of its gradient (P), and nothing sums them"
                fix = (
                    "pass it through the identity whose backward is an all_reduce (I→R, Megatron's copy to the region)"
                )
                return Culprit(user.sites, user.name, why, fix, "R→V")
        return None

    def _transition(self) -> Culprit | None:
        """Find the last forward operation whose result has the right gradient but whose input has a wrong one."""
        flow = self._flow
        forward = set(flow.forward())
        for number in sorted(forward, reverse=True):
            if not flow.has_gradient(number) or flow.gradient_relation(number) is not None:
                continue
            users = [user for user in flow.users.get(number, []) if user in forward]
            event = flow.events[users[-1] if users else number]
            inside = self._within_backward(number)
            if inside is not None:
                fix = "check this backward: its group, its operation, its factor and the order of the ranks"
                why = "takes part in a backward pass that ends in a wrong gradient"
                lines = [event.sites[0], *(flow.events[maker].sites[0] for maker in inside.inputs)]
                also = [line for line in dict.fromkeys(lines) if line != inside.sites[0]]
                return Culprit(inside.sites, inside.name, why, fix, "", also=also)
            why = "receives the right gradient and passes on a wrong one"
            fix = "check the backward of the collectives there: their group, operation, factor and order of ranks"
            return Culprit(event.sites, event.name, why, fix, "")
        return None

    def _within_backward(self, number: int) -> Event | None:
        """Return the first operation that Python code calls between the gradients of an event's users and its own."""
        flow, queue, seen = self._flow, [number], set[int]()
        end = flow.events[number].arrived
        while queue:
            for user in flow.users.get(queue.pop(0), []):
                start = flow.events[user].arrived
                if start < 0 and user not in seen:
                    queue.append(user)
                elif 0 <= start < end:
                    return self._wrong_of([n for n in range(start, end) if flow.events[n].phase == BACKWARD])
                seen.add(user)
        return None

    def _wrong_of(self, between: Sequence[int]) -> Event | None:
        """Return the first operation of a backward pass with a wrong result.

        If no result is wrong, elements are in the wrong order, and the last operation is returned.
        """
        flow = self._flow
        used = [number for number in between if flow.events[number].inputs or flow.events[number].is_collective]
        wrong = [number for number in used if flow.is_wrong(number)]
        number = next(iter(wrong or used[-1:]), None)
        return None if number is None else flow.events[number]

    def _unknown(self, wrong: Sequence[Finding]) -> Culprit | None:
        if not self._one.backward:
            return None
        name = wrong[0].name if wrong else "the loss"
        why = f"leaves {name} with a different gradient than on one rank"
        return Culprit(self._one.backward, "backward", why, "check what is reduced after it, and over which ranks", "")
