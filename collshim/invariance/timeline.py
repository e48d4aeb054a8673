"""Follows one parameter's gradient from the backward pass through the reductions after it."""

from __future__ import annotations

from collections.abc import Sequence

from collshim.invariance.changes import origins
from collshim.invariance.culprit import Culprit, cutting
from collshim.invariance.flow import Flow, cut_by
from collshim.invariance.records import AFTER, BACKWARD, FORWARD, GRADIENT, Event, RankRecord
from collshim.invariance.states import State, States, Step
from collshim.invariance.verdict import NO_GRADIENT, Comparison, Finding

_DIVISIONS = ("div", "__truediv__", "true_divide", "mul", "__mul__", "__rmul__", "div_", "__itruediv__")


class Timeline:
    """The states of one parameter's gradient."""

    def __init__(
        self, finding: Finding, comparison: Comparison, one: RankRecord, ranks: Sequence[RankRecord], flow: Flow
    ) -> None:
        self._finding, self._comparison = finding, comparison
        self._one, self._ranks, self._flow = one, ranks, flow
        self._pieces = comparison.pieces.of[finding.name]
        whole = next(own for own in one.parameters if own.name == finding.name and own.is_compared)
        self._is_known = whole.gradient is not None and bool(self._pieces)
        self._states = States(one, whole, ranks, self._pieces, flow, comparison.tolerance)

    def culprit(self) -> Culprit | None:
        """Return the culprit for the final state; None if the gradient was wrong before any reduction, or not known."""
        if not self._is_known or self._finding.kind == NO_GRADIENT:
            return None
        final = self._states.of([piece.own.gradient for piece in self._pieces])
        raw = self._states.of([piece.own.raw for piece in self._pieces]) or (
            final if all(piece.own.raw is None for piece in self._pieces) else None
        )
        steps = self._states.steps()
        # False for a gradient that was returned by name, or whose hooks were not recorded.
        is_noted = raw is not None and (raw.letter == "P" or raw.is_right)
        if (self._pieces[0].own.value is None or not is_noted) and (calls := self._matching_calls()):
            steps, raw = calls, calls[0][1]
        clipped = self._clipped(steps) or (None if self._is_multiple(final) else self._states.change())
        if clipped is not None or raw is None:
            return clipped
        if raw.weights:
            return self._unequal(raw)
        if final is None and raw.letter != "P" and (wrapped := self._wrapped()) is not None:
            return wrapped
        found = self._after_right(raw, steps) or self._overwritten(final, steps) or self._scaled_wrongly(steps)
        found = found or self._reduced_wrongly(raw, steps)
        return found or self._never_reduced(raw, final, steps) or self._never_divided(raw, final)

    def _is_multiple(self, final: State | None) -> bool:
        """Return whether the gradient or the sum of its parts is the right one times a named factor (``is_named``)."""
        return final is not None and not final.weights and self._flow.is_named(final.factor)

    def _overwritten(self, final: State | None, steps: Sequence[Step]) -> Culprit | None:
        """Explain a gradient that was right until the program assigned a different tensor to ``grad``."""
        last = next(reversed(self._states.changes[0].by_key.values()), None)
        was_right = any(after is not None and after.is_right for *_, after in steps)
        if (
            last is None
            or last.name != GRADIENT
            or last.phase != AFTER
            or not was_right
            or final is None
            or final.is_right
        ):
            return None
        why = "replaces a correct gradient with another tensor"
        return Culprit(last.sites, "grad", why, "leave the gradient as it is, or assign the reduced gradient", "R")

    def _matching_calls(self) -> list[Step]:
        """Return the collectives whose data are gradients that the step returned by name."""
        found = list[Step]()
        for event in self._ranks[self._pieces[0].rank].events:
            if len(event.ranks) < 2:
                continue
            others = [self._flow.on_rank(event, piece.rank) for piece in self._pieces]
            before, after = self._states.around(others)
            if before is not None and after is not None:
                found.append((event, before, after))
        return found

    def _wrapped(self) -> Culprit | None:
        """Explain parts of a parameter that were right until a torch wrapper reduced them; blame the wrapping line."""
        owner = self._ranks[self._pieces[0].rank]
        wraps = [event for event in owner.events if event.phase == FORWARD and event.is_torchs and len(event.ranks) > 1]
        if not wraps or not any(event.sites[0] == owner.backward[0] for event in self._reductions()):
            return None
        why = "combines the gradients of different parts, each held by a different rank"
        fix = "wrap only what every rank holds, or ignore the rest (_set_params_and_buffers_to_ignore_for_model)"
        return Culprit(wraps[0].sites, "the wrapper", why, fix, "V")

    def _unequal(self, raw: State) -> Culprit | None:
        sites = self._loss_line()
        parts = ", ".join(f"{weight:.3g}" for weight in raw.weights)
        why = f"is a mean over this rank's part only, and the parts are unequal: the right weights are {parts}"
        fix = "divide each rank's sum by the count over all ranks (all_reduce of the counts), then sum the gradients"
        return Culprit(sites, "the loss", why, fix, "P")

    def _loss_line(self) -> tuple[str, ...]:
        """Return the line at which the loss becomes a number."""
        events = self._one.events
        number = next(iter(self._one.ends), None)
        sites = self._one.backward
        while number is not None and events[number].value is not None and events[number].value.numel() == 1:  # type: ignore[union-attr]
            sites = events[number].sites
            number = next((maker for maker in events[number].inputs if maker < number), None)
        return sites

    def _scaling(self, raw: float, final: float) -> tuple[str, str]:
        """Return why and fix for a scaled gradient: the ranks' sum was ``raw`` times the right one, now ``final``."""
        if abs(final - raw) <= 1e-3 * raw:  # the ranks' gradients were summed
            why = "sums gradients of means over each rank's part, and should take the mean over the ranks"
            return why, "divide by the number of ranks (ReduceOp.AVG, or div_ after it)"
        if final < 1:
            why = "takes the mean over the ranks, but the ranks' gradients are parts of a sum"
            return why, "sum instead (ReduceOp.SUM), or do not divide the loss by the number of ranks"
        return f"takes the mean over the ranks of gradients that are {final:.4g} times too large", (
            f"remove the factor {final:.4g} from the loss"
        )

    def _has_one_loss(self) -> bool:
        """Return whether every rank has the same loss, which is then the loss of the whole batch."""
        losses = [sum(record.losses) for record in self._ranks if record.losses]
        return bool(losses) and max(losses) - min(losses) <= 1e-5 * max(abs(losses[0]), 1e-3)

    def _cut(self) -> Culprit | None:
        """Return a collective that cuts the gradient of the whole batch's loss, unless it reduces the loss itself."""
        for event, in_graph in cut_by(self._ranks[self._pieces[0].rank]):
            if self._has_one_loss() and event.before is not None and event.before.numel() > 1:
                return cutting(event, in_graph)
        return None

    def _division(self) -> tuple[str, ...]:
        """Return the line that divides the loss; if there is none, the line of the backward pass."""
        events = self._one.events
        for end in self._one.ends:
            number: int | None = end
            while number is not None and events[number].value is not None and events[number].value.numel() == 1:  # type: ignore[union-attr]
                if events[number].name in _DIVISIONS:
                    return events[number].sites
                number = next((maker for maker in events[number].inputs if maker < number), None)
        return self._one.backward

    def _clipped(self, steps: Sequence[Step]) -> Culprit | None:
        """Explain factors that differ between ranks by the norms that the ranks clip by."""
        if not self._finding.rank_factors:
            return None
        if not self._ranks[0].clipped:
            return self._scaled(steps)
        sites, norm = self._ranks[0].clipped[0]
        norms = [record.clipped[0][1] for record in self._ranks if record.clipped]
        if all(abs(other - norm) <= 1e-4 * abs(norm) for other in norms):
            return None
        texts = ", ".join(f"{other:.4g} on rank {rank}" for rank, other in enumerate(norms))
        whole = "".join(f"; it is {norm:.4g} on one rank" for _, norm in self._one.clipped[:1])
        why = f"clips by the norm of this rank's shards: {texts}{whole}"
        fix = "sum the squared norms over the ranks that hold shards, and take the root after that"
        return Culprit(sites, "clip_grad_norm_", why, fix, "V")

    def _scaled(self, steps: Sequence[Step]) -> Culprit | None:
        """Explain factors that differ between ranks by the first operation that writes into the gradient."""
        event = next((event for event, *_ in steps if not event.is_collective and event.phase == AFTER), None)
        if event is None:
            return None
        why = "leads to a factor that differs between the ranks, such as a norm of this rank's shards alone"
        fix = "compute the factor from sums over the ranks that hold shards"
        return Culprit(event.sites, event.name, why, fix, "V")

    def _after_right(self, raw: State, steps: Sequence[Step]) -> Culprit | None:
        """Explain a gradient that was right at some point by the next event that changes it."""
        was_right = raw.is_right
        for event, before, after in steps:
            was_right = was_right or (before is not None and before.is_right)
            if was_right and (after is None or not after.is_right) and (event.is_collective or after is not None):
                if event.is_collective:
                    why = f"over ranks {list(event.ranks)} reduces a gradient that is already right on every rank"
                    return Culprit(event.sites, event.name, why, "remove it: the gradient is already reduced", "R")
                why = "scales a gradient that is already right"
                culprit = Culprit(event.sites, event.name, why, "remove it: the sum is already divided", "R")
                culprit.also = [site for site in self._division()[:1] if site != culprit.site]
                return culprit
            was_right = was_right or (after is not None and after.is_right)
        return None

    def _scaled_wrongly(self, steps: Sequence[Step]) -> Culprit | None:
        """Explain a gradient that is right up to a factor after its reduction, and then scaled by the wrong number."""
        whole: State | None = None
        for event, _, after in steps:
            if after is None or after.letter == "P":
                continue
            if whole is not None and not event.is_collective and abs(after.factor - whole.factor) > 1e-3:
                factor, right = after.factor / whole.factor, 1 / whole.factor
                why = f"scales the reduced gradient by {factor:.4g}: {right:.4g} would be right"
                culprit = Culprit(event.sites, event.name, why, f"scale it by {right:.4g}", "R")
                return None if after.is_right else culprit
            whole = after
        return None

    def _reduced_wrongly(self, raw: State, steps: Sequence[Step]) -> Culprit | None:
        """Explain a sum that should be a mean, or a mean that should be a sum."""
        factor = self._finding.factor
        if raw.letter != "P" or factor is None or abs(factor - 1) < 1e-3:
            return None
        if factor < 1 and raw.factor < 1.5 and (cut := self._cut()) is not None:
            return cut
        reductions = [event for event, *_ in steps if event.is_collective]
        reductions = reductions or [event for event, *_ in self._matching_calls()]
        why, fix = self._scaling(raw.factor, factor)
        if reductions:
            return Culprit(reductions[0].sites, reductions[0].name, why, fix, "P→R")
        sites = self._division()
        buckets = [event for event in self._ranks[0].events if len(event.ranks) > 1 and event.phase == BACKWARD]
        what = buckets[0].name if buckets else "backward"
        if buckets and buckets[0].sites[0] != self._ranks[0].backward[0]:
            sites = buckets[0].sites  # one of the program's hooks
        return Culprit(sites, what, why, fix, "P→R")

    def _never_reduced(self, raw: State, final: State | None, steps: Sequence[Step]) -> Culprit | None:
        """Explain a gradient that was never reduced, so that each rank keeps its part."""
        if raw.letter != "P" or (final is not None and final.is_right):
            return None
        right = "mean" if raw.factor > 1.5 else "sum"
        fix = f"all_reduce it, as a {right}, over the ranks that hold it (P→R)"
        ranks = sorted({piece.rank for piece in self._pieces})
        kept = f"ranks {ranks} each keep a part of the gradient, and their {right} is right"
        mine = [event for event, *_ in steps if event.is_collective]
        if mine:
            why = f"over ranks {list(mine[0].ranks)} does not complete it: {kept}"
            return Culprit(mine[0].sites, mine[0].name, why, f"check its group; {fix}", "P")
        others = self._reductions()
        copied = self._states.changes[0].unused_reduction()
        if copied is not None:
            why = f"reduces a copy of the gradient that is not written back: {kept}"
            return Culprit(copied.sites, copied.name, why, "copy the result into the gradient", "P")
        if (found := self._reduces_others(others, kept, fix)) is not None:
            return found
        if right == "mean":
            fix += "; if DistributedDataParallel wraps the model, call the wrapper, and not inside no_sync"
        why = f"is followed by no reduction: {kept}"
        sites = self._ranks[self._pieces[0].rank].backward or self._one.backward
        return Culprit(sites, "backward", why, fix, "P", also=[event.sites[0] for event, *_ in steps[:1]])

    def _reductions(self) -> list[Event]:
        events = self._ranks[self._pieces[0].rank].events
        return [event for event in events if len(event.ranks) > 1 and event.phase in (AFTER, BACKWARD)]

    def _reduces_others(self, others: Sequence[Event], kept: str, fix: str) -> Culprit | None:
        """Explain a gradient that was left out when other gradients were reduced."""
        buffers = [event for event in others if event.phase == AFTER and not event.parameters and _is_large(event)]
        owner = self._ranks[self._pieces[0].rank]
        others = [event for event in others if event.parameters or (_is_large(event) and origins(owner, event))]
        later = {id(event) for event in owner.events[self._pieces[0].own.arrived :]}
        others = [event for event in others if id(event) in later] or others
        if buffers and not others:
            why = f"reduces a buffer that does not hold this gradient: {kept}"
            return Culprit(buffers[0].sites, buffers[0].name, why, "put it into a buffer before it is reduced", "P")
        if others:
            if (hook := self._hook_of_others(others[0])) is not None:
                why = f"registers the hook that reduces other gradients, and leaves this one out: {kept}"
                return Culprit(hook, "register_hook", why, fix, "P", also=[others[0].sites[0]])
            why = f"reduces other gradients and leaves this one out: {kept}"
            return Culprit(others[0].sites, others[0].name, why, fix, "P")
        return None

    def _hook_of_others(self, event: Event) -> tuple[str, ...] | None:
        """Return the line that registers a hook which reduces other gradients, if this gradient has no such hook."""
        known = self._ranks[self._pieces[0].rank].parameters
        numbers = origins(self._ranks[self._pieces[0].rank], event)
        found = [sites for number in sorted(numbers) for sites in known[number].hooks]
        missing = [sites for sites in found if sites not in self._pieces[0].own.hooks]
        return missing[0] if missing and event.phase == BACKWARD else None

    def _summed_in_backward(self) -> Event | None:
        """Return the last reduction of the forward pass whose backward is a reduction too."""
        events = self._ranks[self._pieces[0].rank].events
        sums = [event for event in events if event.name == "all_reduce(sum)" and len(event.ranks) > 1]
        forward = [event for event in sums if event.phase == FORWARD and not event.in_graph]
        return forward[-1] if forward and any(event.phase == BACKWARD for event in sums) else None

    def _never_divided(self, raw: State, final: State | None) -> Culprit | None:
        """Explain a gradient that is a multiple of the right one on every rank."""
        if raw.letter == "P" or raw.is_right or final is None or abs(final.factor - raw.factor) > 1e-3:
            return None
        if (
            raw.factor < 1 and (cut := self._cut()) is not None
        ):  # if ranks have equal data, their parts of the gradient are equal too
            return cut
        if (doubled := self._summed_in_backward()) is not None and self._has_one_loss():
            why = f"has a backward that sums one loss's gradients over the ranks: {raw.factor:.4g} times the right one"
            fix = "use one whose backward is the identity (P→I), or divide the loss by the number of ranks"
            return Culprit(doubled.sites, doubled.name, why, fix, "P→R")
        others = [event for event in self._reductions() if event.parameters]
        why = f"leaves the gradient {raw.factor:.4g} times the right one: the loss is a mean over a part of the batch"
        if others:
            why = f"scales other gradients, and leaves this one {raw.factor:.4g} times the right one"
            return Culprit(others[0].sites, others[0].name, why, "divide this one too", "V")
        return Culprit(self._division(), "backward", why, f"divide it by {raw.factor:.4g}", "V")


def _is_large(event: Event) -> bool:
    """Return whether an event reduces more than one number."""
    return event.name.startswith(("all_reduce", "reduce")) and event.before is not None and event.before.numel() > 1
