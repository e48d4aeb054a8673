"""Numbers that need the full width and range of their dtype, so that a conversion to another dtype is visible.

Labels are moved or compared, addends are added, factors are multiplied. Every partial sum and every partial product is
exact in any order, so a result has the same bits from every backend that keeps the dtype. This module needs only the
standard library and NumPy.

Six kinds of floating-point numbers take turns by their position in a part: whole numbers of full width (2**53 - 1), the
least (subnormal), the greatest, numbers next to 1 (1 + 2**-52), infinities, and, unless they are added, signed zeros.
For integers the least and the greatest take turns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]


class Places(NamedTuple):
    """The location of each number of a case.

    Attributes:
        ranks: the number of ranks that have an input.
        sender: the rank that has each number in its input.
        position: the position of each number in its part.
        label: a different label for each number.
        sign: 1 or -1 for each number.
    """

    ranks: int
    sender: Numbers
    position: Numbers
    label: Numbers
    sign: Numbers

    @property
    def turn(self) -> Numbers:
        """The distance of each sender from the leader at its position: 0 for the leader."""
        return (self.sender - self.position - self.label[:1]) % self.ranks


class Floats(NamedTuple):
    """A floating-point format: multiples of 2**least to 2**greatest, by significands of up to ``digits`` bits."""

    digits: int
    least: int
    greatest: int

    @property
    def units(self) -> Numbers:
        """The exponents of the kinds of numbers: whole, -0, least, greatest, next to 1, infinite."""
        return np.array([0, 0, self.least, self.greatest, 1 - self.digits, 0])


WHOLE, ZERO, LEAST, GREATEST, ONE, INFINITE = KINDS = range(6)


def floats(dtype: str) -> Floats:
    """Return the format of a floating-point dtype."""
    if dtype == "bfloat16":
        return Floats(8, -133, 120)
    info = np.finfo(dtype)
    digits = int(info.nmant) + 1
    return Floats(digits, int(info.minexp) - int(info.nmant), int(info.maxexp) - digits)


def float_labels(at: Places, form: Floats) -> Numbers:
    """Return labels that all differ, except zeros and infinities; at one position all ranks have the same kind."""
    kind, odd = at.position % len(KINDS), 1 + 2 * (at.label % (1 << form.digits - 2))
    half = 1 << form.digits - 1
    zero = np.zeros_like(odd)
    significands = [2 * half - odd, zero, 1 + at.label % (half - 1), odd - 2 * half, half + odd, zero]
    numbers: Numbers = np.ldexp(np.choose(kind, significands).astype(float), form.units[kind])
    numbers[kind == ZERO] = -0.0
    numbers[kind == INFINITE] = np.where(at.sender % 2, -np.inf, np.inf)[kind == INFINITE]
    return numbers


def integer_labels(at: Places, dtype: str) -> Numbers:
    """Return the least and the greatest integers: alternating by rank and position, or the same kind on all ranks."""
    info = np.iinfo(dtype)
    step = 1 if info.bits == 8 else 2  # odd numbers for wide dtypes, because rounding changes them
    offset = step * (at.label % (2 ** (info.bits - 1) // step))
    kind = at.position % 4
    is_least = np.where(kind < 2, (at.position + at.sender) % 2 == 1, kind == 3)
    numbers: Numbers = np.where(is_least, info.min + step - 1 + offset, info.max - offset)
    return numbers


def float_addends(at: Places, form: Floats, *, average: bool, infinite: bool) -> Numbers:
    """Return addends without negative zeros: a backend may start a sum from 0, which makes them positive."""
    kind = at.position % len(KINDS)
    kind = np.where(kind == ZERO, WHOLE, kind)
    digits = np.where(kind == LEAST, form.digits - 1, form.digits)  # so that sums of subnormal numbers are subnormal
    significands = at.sign * _addends(at, digits, average=average)
    numbers: Numbers = np.ldexp(significands.astype(float), form.units[kind])
    return _with_infinities(at, kind, numbers) if infinite else numbers


def integer_addends(at: Places, dtype: str, *, average: bool) -> Numbers:
    """Return addends whose sums and averages do not overflow."""
    signs = 1 if dtype.startswith("uint") else at.sign
    return signs * _addends(at, np.full(at.label.shape, _digits(dtype)), average=average)


def float_factors(at: Places, form: Floats) -> Numbers:
    """Return factors with products of every kind; a zero or an infinity comes from one rank."""
    kind = at.position % len(KINDS)
    # A factor 2 of another rank adds no digit, except to the least numbers; for the greatest the exponent is one less.
    digits = np.where(kind == LEAST, form.digits - 1, form.digits + 1)
    units = form.units[kind] - (kind == GREATEST)
    significands = at.sign * _factors(at, digits)
    exponents = np.where(at.turn == 0, units, 0)
    numbers: Numbers = np.ldexp(significands.astype(float), exponents)
    numbers[(kind == ZERO) & (at.turn == 0)] *= 0.0
    return _with_infinities(at, kind, numbers)


def small_factors(at: Places) -> Numbers:
    """Return factors of few digits, so that their products can be multiplied further."""
    return at.sign * _factors(at, np.full(at.label.shape, 6))


def integer_factors(at: Places, dtype: str) -> Numbers:
    """Return factors whose products do not overflow."""
    signs = 1 if dtype.startswith("uint") else at.sign
    return signs * _factors(at, np.full(at.label.shape, _digits(dtype)))


def bits(at: Places, dtype: str, random: np.random.Generator) -> Numbers:
    """Return random bits, most of them equal on all ranks, so that "and" and "or" return both ones and zeros."""
    info = np.iinfo(dtype)
    common, *several = random.integers(info.min, info.max, (4, at.label.size), dtype, endpoint=True)
    numbers: Numbers = common[at.position] ^ (several[0] & several[1] & several[2])
    return numbers


def booleans(at: Places, random: np.random.Generator) -> Numbers:
    """Return booleans with both truth values in every part of two or more."""
    drawn = np.where(at.position < 2, (at.label + at.sender) % 2, random.integers(0, 2, at.label.shape))
    return drawn.astype(bool)


def boolean_addends(at: Places) -> Numbers:
    """Return booleans that alternate by position: true on all ranks, on one, on all but one, on none."""
    leads = at.turn == 0
    return np.choose((at.position + at.label[:1]) % 4, [leads | True, leads, ~leads, leads & False])


def _addends(at: Places, digits: Numbers, *, average: bool) -> Numbers:
    """Return an odd number of ``digits`` bits for one rank and small even ones for the others; no sum has more bits.

    For an average they are multiples of the number of ranks, and so is their sum.
    """
    digits = np.maximum(digits - (at.ranks - 1).bit_length(), 2) if average else digits
    quarter = np.left_shift(np.int64(1), digits - 2)
    lead = 2 * quarter + 1 + 2 * (at.label % np.maximum(quarter // 2, 1))
    most = quarter // at.ranks
    rest = np.where(most > 1, (most - 2) // 4 * 4 + 2 - 4 * (at.label % np.maximum(most // 4, 1)), 0)
    return np.where(at.turn == 0, lead, rest) * (at.ranks if average else 1)


def _factors(at: Places, digits: Numbers) -> Numbers:
    """Return an odd number for one rank, 3 and 2 for the next two, 1 for others; the product has ``digits`` bits."""
    lead = np.left_shift(np.int64(1), digits - 4)
    lead += 1 + 2 * (at.label % np.maximum(lead // 2, 1))
    return np.select([at.turn == 0, at.turn == 1, at.turn == 2], [lead, 3, 2], 1)


def _with_infinities(at: Places, kind: Numbers, numbers: Numbers) -> Numbers:
    """Make one rank's number infinite at each position of the infinite kind."""
    numbers[(kind == INFINITE) & (at.turn == 0)] *= np.inf
    return numbers


def _digits(dtype: str) -> int:
    return int(np.iinfo(dtype).bits) - (not dtype.startswith("uint"))
