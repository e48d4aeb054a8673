"""Numbers that need all the width and the range of their dtype, so that a detour through another dtype shows.

``labels`` are what is moved or compared, ``addends`` what is added, ``factors`` what is multiplied. Every partial sum
and every partial product of these is exact, in whatever order: so a result has the same bits from every backend that
keeps the dtype. Standard library and NumPy only.

By the place of a number in its part, six kinds of floating numbers take turns: whole numbers of full width
(2**53 - 1), the least (subnormal) and the greatest, numbers next to 1 (1 + 2**-52), infinities, and, where none is
added, zeros with a sign. Of integers the least and the greatest take turns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]


class Places(NamedTuple):
    """Where each number of a case lies.

    Attributes:
        ranks: how many ranks give numbers.
        giver: the rank that gives each.
        position: the place of each in its part.
        label: a number for each that no other has.
        sign: 1 or -1 for each.
    """

    ranks: int
    giver: Numbers
    position: Numbers
    label: Numbers
    sign: Numbers

    @property
    def turn(self) -> Numbers:
        """How far each giver is from the one that leads at this place: 0 for the leader."""
        return (self.giver - self.position - self.label[:1]) % self.ranks


class Floats(NamedTuple):
    """A format: multiples of 2**least to 2**greatest, by significands of up to ``digits`` bits."""

    digits: int
    least: int
    greatest: int

    @property
    def units(self) -> Numbers:
        """The exponents of the kinds of numbers: whole, -0, least, greatest, next to 1, infinite."""
        return np.array([0, 0, self.least, self.greatest, 1 - self.digits, 0])


WHOLE, ZERO, LEAST, GREATEST, ONE, INFINITE = KINDS = range(6)


def floats(dtype: str) -> Floats:
    """The format of a floating dtype."""
    if dtype == "bfloat16":
        return Floats(8, -133, 120)
    info = np.finfo(dtype)
    digits = int(info.nmant) + 1
    return Floats(digits, int(info.minexp) - int(info.nmant), int(info.maxexp) - digits)


def float_labels(at: Places, form: Floats) -> Numbers:
    """No two alike, but for zeros and infinities; at one place all ranks have one kind."""
    kind, odd = at.position % len(KINDS), 1 + 2 * (at.label % (1 << form.digits - 2))
    half = 1 << form.digits - 1
    zero = np.zeros_like(odd)
    significands = [2 * half - odd, zero, 1 + at.label % (half - 1), odd - 2 * half, half + odd, zero]
    numbers: Numbers = np.ldexp(np.choose(kind, significands).astype(float), form.units[kind])
    numbers[kind == ZERO] = -0.0
    numbers[kind == INFINITE] = np.where(at.giver % 2, -np.inf, np.inf)[kind == INFINITE]
    return numbers


def integer_labels(at: Places, dtype: str) -> Numbers:
    """The least and the greatest ones: in turn by rank, by place; and the greatest, or the least, of all ranks."""
    info = np.iinfo(dtype)
    step = 1 if info.bits == 8 else 2  # of wide ones odd numbers, which rounding changes
    offset = step * (at.label % (2 ** (info.bits - 1) // step))
    kind = at.position % 4
    is_least = np.where(kind < 2, (at.position + at.giver) % 2 == 1, kind == 3)
    numbers: Numbers = np.where(is_least, info.min + step - 1 + offset, info.max - offset)
    return numbers


def float_addends(at: Places, form: Floats, *, average: bool, infinite: bool) -> Numbers:
    """Sums have no zero that is negative: who starts from 0 makes it positive, which is no fault."""
    kind = at.position % len(KINDS)
    kind = np.where(kind == ZERO, WHOLE, kind)
    digits = np.where(kind == LEAST, form.digits - 1, form.digits)  # so that sums of subnormal numbers are subnormal
    significands = at.sign * _addends(at, digits, average=average)
    numbers: Numbers = np.ldexp(significands.astype(float), form.units[kind])
    return _with_infinities(at, kind, numbers) if infinite else numbers


def integer_addends(at: Places, dtype: str, *, average: bool) -> Numbers:
    """Sums and averages do not overflow."""
    signs = 1 if dtype.startswith("uint") else at.sign
    return signs * _addends(at, np.full(at.label.shape, _digits(dtype)), average=average)


def float_factors(at: Places, form: Floats) -> Numbers:
    """Of ranks whose product is of every kind; a zero or an infinity is one rank's."""
    kind = at.position % len(KINDS)
    # A rank's 2 makes no digit; of the least it must, and of the greatest it is taken off the exponent.
    digits = np.where(kind == LEAST, form.digits - 1, form.digits + 1)
    units = form.units[kind] - (kind == GREATEST)
    significands = at.sign * _factors(at, digits)
    exponents = np.where(at.turn == 0, units, 0)
    numbers: Numbers = np.ldexp(significands.astype(float), exponents)
    numbers[(kind == ZERO) & (at.turn == 0)] *= 0.0
    return _with_infinities(at, kind, numbers)


def small_factors(at: Places) -> Numbers:
    """Of few digits, for the sake of what is multiplied with their products."""
    return at.sign * _factors(at, np.full(at.label.shape, 6))


def integer_factors(at: Places, dtype: str) -> Numbers:
    """Products do not overflow."""
    signs = 1 if dtype.startswith("uint") else at.sign
    return signs * _factors(at, np.full(at.label.shape, _digits(dtype)))


def bits(at: Places, dtype: str, random: np.random.Generator) -> Numbers:
    """Any bits, of which the ranks have most in common: so "and" and "or" of many have some of them too."""
    info = np.iinfo(dtype)
    common, *several = random.integers(info.min, info.max, (4, at.label.size), dtype, endpoint=True)
    numbers: Numbers = common[at.position] ^ (several[0] & several[1] & several[2])
    return numbers


def booleans(at: Places, random: np.random.Generator) -> Numbers:
    """Both truth values in every part of two or more."""
    drawn = np.where(at.position < 2, (at.label + at.giver) % 2, random.integers(0, 2, at.label.shape))
    return drawn.astype(bool)


def boolean_addends(at: Places) -> Numbers:
    """In turn by place: true everywhere, on one rank alone, on all but one, nowhere."""
    leads = at.turn == 0
    return np.choose((at.position + at.label[:1]) % 4, [leads | True, leads, ~leads, leads & False])


def _addends(at: Places, digits: Numbers, *, average: bool) -> Numbers:
    """Of one rank an odd number of ``digits`` bits, of the others even ones, so little that the sum has no more.

    Of an average they are multiples of the number of ranks, and so is their sum.
    """
    digits = np.maximum(digits - (at.ranks - 1).bit_length(), 2) if average else digits
    quarter = np.left_shift(np.int64(1), digits - 2)
    lead = 2 * quarter + 1 + 2 * (at.label % np.maximum(quarter // 2, 1))
    most = quarter // at.ranks
    rest = np.where(most > 1, (most - 2) // 4 * 4 + 2 - 4 * (at.label % np.maximum(most // 4, 1)), 0)
    return np.where(at.turn == 0, lead, rest) * (at.ranks if average else 1)


def _factors(at: Places, digits: Numbers) -> Numbers:
    """Of one rank an odd number, of the two behind it 3 and 2, of others 1; their product has ``digits`` bits."""
    lead = np.left_shift(np.int64(1), digits - 4)
    lead += 1 + 2 * (at.label % np.maximum(lead // 2, 1))
    return np.select([at.turn == 0, at.turn == 1, at.turn == 2], [lead, 3, 2], 1)


def _with_infinities(at: Places, kind: Numbers, numbers: Numbers) -> Numbers:
    """At the places of infinite numbers one rank's is, and no other one's."""
    numbers[(kind == INFINITE) & (at.turn == 0)] *= np.inf
    return numbers


def _digits(dtype: str) -> int:
    return int(np.iinfo(dtype).bits) - (not dtype.startswith("uint"))
