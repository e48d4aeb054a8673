"""Compares the gradients and losses of a run on several ranks with those of the one-rank run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from collshim.invariance.pieces import Piece, Pieces
from collshim.invariance.records import Parameter, RankRecord
from collshim.invariance.relations import Tolerance, as_float, factor_of, shares

NO_GRADIENT, BETWEEN_RANKS, DIFFERS, STARTS = "no gradient", "differs between ranks", "differs", "starts differently"
UNUSED, ZERO, UPDATE, NOT_HELD, ONE = "unused", "zero", "same update", "not found", "1"
EXTRA = "not on one rank"
FINE = (ONE, UNUSED, ZERO, UPDATE)

_NAME_TOLERANCE = 2e-3

_STEP_TOLERANCE = 1e-2
"""How much an optimizer's steps may differ, relative to their norm: Adam's depend on the sign of rounding errors."""

_FEW = 2
"""The least number of elements that allow a verdict: any number is a multiple of a single number."""


@dataclass
class Finding:
    """How a parameter or a loss of the run on several ranks compares with the one-rank run.

    Attributes:
        name: the parameter's name.
        kind: one of this module's constants, or a factor such as "W", "1/W" or "1.5".
        factor: the ratio to the one-rank run; None if there is no single ratio.
        shares: the weights with which the ranks' gradients add up to the one-rank run's; None if there are none, or
            if they are not needed.
        detail: more about it, as text.
        ranks: the ranks that hold the parameter.
        rank_factors: the ratio on each of these ranks, if each has one.
        is_scaled: whether it is a loss that the program scales, while the gradients are right.
    """

    name: str
    kind: str
    factor: float | None = None
    shares: list[float] | None = None
    detail: str = ""
    ranks: list[int] = field(default_factory=list)
    rank_factors: list[float] = field(default_factory=list)
    is_scaled: bool = False

    @property
    def is_fine(self) -> bool:
        """Whether the run computes the same here."""
        return self.kind in FINE or self.is_scaled


@dataclass
class Comparison:
    """The comparison of a run on several ranks with the one-rank run.

    Attributes:
        size: the number of ranks.
        parameters: the findings about the parameters, in the model's order.
        loss: the finding about the loss.
        pieces: the part of each parameter that each rank holds.
        tolerance: the tolerance for gradients.
        loaded: the number of pieces that were set to the values of the one-rank run.
        draws: the differences between the ranks' dropouts, as text, by the line that calls the dropout.
    """

    size: int
    parameters: list[Finding]
    loss: Finding
    pieces: Pieces
    tolerance: Tolerance
    loaded: int = 0
    draws: dict[tuple[str, ...], str] = field(default_factory=dict)

    @property
    def wrong(self) -> list[Finding]:
        """The findings that are not fine."""
        return [finding for finding in self.parameters if not finding.is_fine]

    @property
    def is_fine(self) -> bool:
        """Whether the run computes the same as one rank."""
        return not self.wrong and self.loss.is_fine and not self.draws


def tolerance_of(one: RankRecord, terms: int) -> Tolerance:
    """Return the tolerance for a model's gradients."""
    known = [own.gradient for own in one.parameters if own.is_compared]
    gradients = [gradient for gradient in known if gradient is not None and gradient.numel()]
    if not gradients:
        return Tolerance.of(torch.float32, terms)
    dtypes = [gradient.dtype for gradient in gradients]
    dtype = max([*dtypes, one.coarsest or dtypes[0]], key=_eps)
    squares = sum(float(as_float(gradient).abs().square().sum()) for gradient in gradients)
    return Tolerance.of(dtype, terms, math.sqrt(squares / sum(gradient.numel() for gradient in gradients)))


def _eps(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).eps if dtype.is_floating_point or dtype.is_complex else 0.0


def compare(one: RankRecord, ranks: Sequence[RankRecord], mesh: Mapping[str, int], tolerance: Tolerance) -> Comparison:
    """Compare a run on several ranks with the one-rank run."""
    pieces = Pieces(one, ranks)
    names = names_of_factors(len(ranks), mesh)
    wholes = [whole for whole in one.parameters if whole.is_compared]
    is_linear = _are_linear(wholes)
    findings = [_finding(whole, pieces.of[whole.name], names, tolerance, is_linear) for whole in wholes]
    findings += _extra(pieces)
    loss = _loss(one.losses, [record.losses for record in ranks], names, tolerance)
    loss.is_scaled = loss.kind in names.values() and all(finding.is_fine for finding in findings)
    return Comparison(len(ranks), findings, loss, pieces, tolerance, draws=_draws(ranks))


def _extra(pieces: Pieces) -> list[Finding]:
    """Return findings for the ranks' parameters that match no parameter of the one-rank run."""
    ranks = dict[str, list[int]]()
    for rank, name in pieces.unknown:
        ranks.setdefault(name, []).append(rank)
    return [Finding(name, EXTRA, None, detail=f"on ranks {held}", ranks=held) for name, held in ranks.items()]


def names_of_factors(size: int, mesh: Mapping[str, int]) -> dict[float, str]:
    """Return the names of factors that are powers of the number of ranks or of the size of a mesh axis."""
    names = {1.0: ONE}
    for letter, number in (("W", size), *mesh.items()):
        for power, text in ((1, letter), (-1, f"1/{letter}"), (2, f"{letter}²"), (-2, f"1/{letter}²")):
            names.setdefault(float(number) ** power, text)
    return names


def name_of(factor: float, names: Mapping[float, str], allowed: float = _NAME_TOLERANCE) -> str:
    """Return the name of the named factor that differs by at most ``allowed``, relatively; else the number as text."""
    near = (text for number, text in names.items() if abs(factor - number) <= allowed * number)
    return next(near, f"{factor:.4g}")


def _finding(
    whole: Parameter, pieces: list[Piece], names: Mapping[float, str], tolerance: Tolerance, is_linear: bool
) -> Finding:
    finding = Finding(whole.name, ONE, 1.0, ranks=[piece.rank for piece in pieces])
    expected = whole.gradient
    if not pieces:
        finding.kind = NOT_HELD if expected is not None else UNUSED
        return finding
    if (start := _start(pieces)) is not None:
        finding.kind, finding.detail, finding.factor = STARTS, start, None
        return finding
    if expected is None:
        _judge_without_gradient(finding, whole, pieces, tolerance)
        return finding
    _judge(finding, as_float(expected), pieces, tolerance, names)
    _judge_by_step(finding, whole, pieces, tolerance, is_linear)
    return finding


def _judge_by_step(
    finding: Finding, whole: Parameter, pieces: Sequence[Piece], tolerance: Tolerance, is_linear: bool
) -> None:
    """Adjust a finding by the optimizer's steps: steps may differ between ranks, or be right despite the gradients."""
    if finding.is_fine:
        if (end := _end(pieces)) is not None:
            finding.kind, finding.factor, finding.detail = BETWEEN_RANKS, None, end
        return
    is_scaled = finding.factor not in (None, 0.0)
    is_unreduced = finding.kind in (BETWEEN_RANKS, NO_GRADIENT)
    is_used_rightly = whole.gradient is not None and _steps_rightly(as_float(whole.gradient), pieces, tolerance)
    tells = is_linear if is_scaled else is_unreduced and (is_linear or is_used_rightly)
    if tells and _same_update(whole, pieces, tolerance):
        what = f"{finding.kind} times as large" if is_scaled else "not reduced"
        finding.kind, finding.detail = UPDATE, f"the gradients are {what}, but the optimizer's steps are the same"


def _end(pieces: Sequence[Piece]) -> str | None:
    """Describe two ranks that hold the same parameter and end with different values; None if there are none."""
    steps = [(piece, _step(piece.own)) for piece in pieces if piece.is_whole]
    known = [(piece.rank, step) for piece, step in steps if step is not None]
    if len(known) < len(steps) and known:
        left = next(piece.rank for piece, step in steps if step is None)
        return f"rank {known[0][0]} ends with a new value, and rank {left} does not"
    for rank, step in known[1:]:
        if not Tolerance(_STEP_TOLERANCE).alike(step, known[0][1]):
            return f"ranks {known[0][0]} and {rank} end with different values"
    return None


def _step(own: Parameter) -> Tensor | None:
    return None if own.after is None or own.value is None else as_float(own.after) - as_float(own.value)


def _steps_rightly(expected: Tensor, pieces: Sequence[Piece], tolerance: Tolerance) -> bool:
    """Return whether the gradients that optimizers used are right; pieces that were not stepped do not count."""
    used = [piece for piece in pieces if piece.own.is_stepped]
    return all(tolerance.alike(_gradient(piece, piece.of(expected)), piece.of(expected)) for piece in used)


def _are_linear(parameters: Sequence[Parameter]) -> bool:
    """Return whether the optimizer's steps are multiples of the gradients, and so show whether these were right."""
    found = list[bool]()
    for whole in parameters:
        step = _step(whole)
        if step is not None and whole.gradient is not None and step.numel() >= _FEW and bool(whole.gradient.any()):
            found.append(factor_of(step, as_float(whole.gradient), Tolerance(_STEP_TOLERANCE)) is not None)
    return bool(found) and all(found)


def _judge_without_gradient(finding: Finding, whole: Parameter, pieces: Sequence[Piece], tolerance: Tolerance) -> None:
    """Judge a parameter without a gradient on one rank, perhaps because another tensor has its gradient (ZeRO)."""
    finding.factor = None
    if any(piece.own.gradient is not None for piece in pieces):
        finding.kind, finding.detail = DIFFERS, "there is no gradient on one rank, but there is one on several"
    elif whole.after is None and all(piece.own.after is None for piece in pieces):
        finding.kind = UNUSED
    elif _same_update(whole, pieces, tolerance):
        finding.kind, finding.detail = UPDATE, "no gradients to compare, but the optimizer's steps are the same"
    else:
        finding.kind, finding.detail = DIFFERS, "no gradients to compare, and the optimizer's steps differ"


def _start(pieces: Sequence[Piece]) -> str | None:
    """Describe two ranks that hold the same parameter and start with different values; None if there are none."""
    values = [(piece.rank, piece.own.value) for piece in pieces if piece.is_whole and piece.own.value is not None]
    for rank, value in values[1:]:
        if value.shape == values[0][1].shape and not torch.equal(value, values[0][1]):
            return f"ranks {values[0][0]} and {rank} start with different values"
    return None


def _judge(
    finding: Finding, expected: Tensor, pieces: Sequence[Piece], tolerance: Tolerance, names: Mapping[float, str]
) -> None:
    parts = [piece.of(expected) for piece in pieces]
    actual = [_gradient(piece, part) for piece, part in zip(pieces, parts, strict=True)]
    if tolerance.is_zero(expected) and all(tolerance.is_zero(gradient) for gradient in actual):
        finding.kind = ZERO if not bool(expected.any()) else ONE
        return
    if all(not bool(gradient.any()) for gradient in actual):
        finding.kind, finding.factor = NO_GRADIENT, 0.0
        return
    factors = [factor_of(gradient, part, tolerance) for gradient, part in zip(actual, parts, strict=True)]
    known = [
        factor
        for factor, part in zip(factors, parts, strict=True)
        if factor is not None and not tolerance.is_zero(part)
    ]
    allowed = max(_NAME_TOLERANCE, tolerance.relative)
    if None not in factors and known and max(known) - min(known) <= allowed * abs(max(known)):
        finding.factor = known[0]
        finding.kind = name_of(known[0], names, allowed)
        if finding.kind == ONE and any(abs(factor - 1) > tolerance.relative for factor in known):
            finding.kind = f"{known[0]:.6g}"
        return
    finding.factor = None
    finding.rank_factors = [factor for factor in factors if factor is not None] if None not in factors else []
    finding.kind = _difference(parts, actual, tolerance)
    if all(part.shape == parts[0].shape and torch.equal(part, parts[0]) for part in parts):
        finding.shares = shares(parts[0], actual, tolerance)
    finding.detail = _detail(finding)


def _gradient(piece: Piece, part: Tensor) -> Tensor:
    gradient = piece.own.gradient
    if gradient is None:
        return torch.zeros_like(part)
    return as_float(gradient.to_dense() if gradient.is_sparse else gradient).reshape(part.shape)


def _difference(parts: Sequence[Tensor], actual: Sequence[Tensor], tolerance: Tolerance) -> str:
    for part, gradient in zip(parts[1:], actual[1:], strict=True):
        same_piece = part.shape == parts[0].shape and torch.equal(part, parts[0])
        if same_piece and not tolerance.alike(gradient, actual[0]):
            return BETWEEN_RANKS
    return DIFFERS


def _detail(finding: Finding) -> str:
    if finding.shares is not None:
        if all(abs(share - 1) < _NAME_TOLERANCE for share in finding.shares):
            return "the sum of the ranks' gradients is right"
        if all(abs(share * len(finding.shares) - 1) < _NAME_TOLERANCE for share in finding.shares):
            return "the mean of the ranks' gradients is right"
        parts = zip(finding.shares, finding.ranks, strict=True)
        return f"the right one is {' + '.join(f'{share:.3g} x rank {rank}' for share, rank in parts)}"
    if finding.rank_factors:
        return ", ".join(
            f"{factor:.4g} on rank {rank}" for factor, rank in zip(finding.rank_factors, finding.ranks, strict=True)
        )
    return ""


def _same_update(whole: Parameter, pieces: Sequence[Piece], tolerance: Tolerance) -> bool:
    """Return whether the optimizer changed the values, and left all ranks with those of the one-rank run."""
    if whole.after is None or whole.value is None:
        return False
    step = as_float(whole.after) - as_float(whole.value)
    for piece in pieces:
        if piece.own.after is None or piece.own.value is None:
            return False
        own = as_float(piece.own.after) - as_float(piece.own.value)
        part = piece.of(step)
        rounding = Tolerance(64 * tolerance.relative, _eps(whole.after.dtype) * float(whole.after.abs().max()))
        if not rounding.alike(own, part):
            return False
    return True


def _loss(
    one: Sequence[float], ranks: Sequence[Sequence[float]], names: Mapping[float, str], tolerance: Tolerance
) -> Finding:
    """Compare the losses: each rank's may be the loss of the whole batch, or their mean or sum may be."""
    finding = Finding("the loss", ONE, 1.0, ranks=[rank for rank, losses in enumerate(ranks) if losses])
    known = [losses for losses in ranks if losses]
    if not one or not known:
        finding.kind, finding.detail = UNUSED, "no loss"
        return finding
    expected, own = sum(one), [sum(losses) for losses in known]
    allowed = 4 * tolerance.relative * max(abs(expected), 1e-3)
    is_same = max(own) - min(own) <= allowed
    if is_same and abs(own[0] - expected) <= allowed:
        finding.detail = "the same on every rank" if len(own) > 1 else f"on rank {finding.ranks[0]}"
    elif abs(sum(own) / len(own) - expected) <= allowed:
        finding.detail = "the mean of the ranks'"
    elif abs(sum(own) - expected) <= allowed:
        finding.detail = "the sum of the ranks'"
    elif is_same and len(own) > 1:
        finding.factor = own[0] / expected if expected else math.inf
        finding.kind = name_of(finding.factor, names)
        finding.kind = finding.kind if finding.kind != ONE else DIFFERS
        finding.detail = f"{own[0]:.6g} on every rank, {expected:.6g} on one"
    else:
        finding.kind, finding.factor = UPDATE, None
        finding.detail = "each rank has the loss of its own part"
    return finding


def _draws(ranks: Sequence[RankRecord]) -> dict[tuple[str, ...], str]:
    """Find dropouts that draw different masks on ranks whose input is the same."""
    found = dict[tuple[str, ...], str]()
    seen = dict[tuple[tuple[str, ...], int, str], tuple[int, str]]()
    for rank, record in enumerate(ranks):
        for draw in record.draws:
            first, state = seen.setdefault((draw.sites, draw.turn, draw.of), (rank, draw.state))
            if state != draw.state:
                found.setdefault(
                    draw.sites, f"ranks {first} and {rank} hold the same activation and drop different parts"
                )
    return found
