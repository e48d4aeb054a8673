"""The outcomes of the mutants, as lines for a terminal and as ``docs/mutants.md``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from collshim.conformance.mutants.declared import LAYERS
from collshim.conformance.mutants.mechanical import declared_harmless
from collshim.conformance.mutants.runner import CAUGHT, Verdict
from collshim.conformance.reporting.markdown import table

_HEAD = """# Mutants

This page shows whether the conformance suite notices mistakes. Each row below is a small fault. The fault was put into
a copy of the package, and the suite was run on the copy. The fault counts as caught if a comparison failed and its
message names the collective, the same test passes without the fault, and at least one different test passes with it.

`make mutants` repeats the run and fails if a mutant survives; the run below took {minutes} minutes. The patches are in
`conformance/mutants/declared/`. The faults under "Made by a rule" are not patches: a rule makes them, and a seed
chooses their places. The suite checks the behaviour of the five frameworks. If only collshim defines a behaviour
(outputs that overlap inputs but are not in place, ranks whose input needs no gradient), the engine's own tests check
it, and it has no row here.

{total}
"""

_TITLES = {
    "engine": "The engine",
    "layout": "Layout, kinds of arrays, memory",
    "transports": "Transports",
    "adapters": "Adapters",
    "mechanical": "Made by a rule",
}
_SHOWN = 200
"""The number of characters of a message that the page shows."""


def line(verdict: Verdict) -> str:
    """Return one verdict as a line for a terminal."""
    mark = "✓" if verdict.outcome == CAUGHT else "✗"
    told = _cut(verdict.message) or "no test failed"
    return f"{mark} {verdict.mutant.name}: {verdict.outcome} ({verdict.seconds:.0f} s)\n    {told}"


def total(verdicts: Sequence[Verdict]) -> str:
    """Return how many mutants were caught, in all and by layer."""
    every = Counter(verdict.mutant.layer for verdict in verdicts)
    caught = Counter(verdict.mutant.layer for verdict in verdicts if verdict.outcome == CAUGHT)
    parts = ", ".join(f"{layer} {caught[layer]} of {every[layer]}" for layer in every)
    return f"{caught.total()} of {every.total()} mutants caught: {parts}."


def page(verdicts: Sequence[Verdict], minutes: float) -> str:
    """Return the text of ``docs/mutants.md``."""
    tables = "".join(_table(layer, verdicts) for layer in (*LAYERS, "mechanical"))
    return _HEAD.format(minutes=max(1, round(minutes)), total=total(verdicts)) + tables + _left_out()


def _table(layer: str, verdicts: Sequence[Verdict]) -> str:
    rows = [_row(verdict) for verdict in verdicts if verdict.mutant.layer == layer]
    titles = ("mutant", "in", "what goes wrong", "what caught it")
    return f"\n## {_TITLES[layer]}\n\n{table(titles, rows)}" if rows else ""


def _left_out() -> str:
    """Return the places that a rule may not choose; see ``harmless.toml``."""
    rows = [[f"`{entry['name']}`", entry["reason"]] for entry in declared_harmless()]
    return f"\n## Left out\n\n{table(('place', 'why no case of the suite shows a fault there'), rows)}"


def _row(verdict: Verdict) -> list[str]:
    mutant = verdict.mutant
    place = f"`{mutant.file}`, `{mutant.within}`" if mutant.within else f"`{mutant.file}`"
    told = f"`{_cut(verdict.message)}`" if verdict.outcome == CAUGHT else f"**{verdict.outcome}**"
    return [f"`{mutant.name}`", place, mutant.fault, told]


def _cut(text: str) -> str:
    plain = " ".join(text.split()).replace("`", "'")
    return plain if len(plain) <= _SHOWN else f"{plain[:_SHOWN]} ..."
