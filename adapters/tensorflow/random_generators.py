"""``tf.random.Generator`` and the stateless random numbers, with TensorFlow's own numbers.

The state is a variable. If the generator is made in a strategy's scope, each replica has its own stream of numbers.
Source: TensorFlow 2.21, on CPU; the algorithm is Philox.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import torch

from collshim.errors import ArgumentError, ArgumentValueError, also
from collshim.tensorflow import philox
from collshim.tensorflow.arrays import lengths_of
from collshim.tensorflow.constants import constant, torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.data_types import DType
from collshim.tensorflow.distribute import context
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.gradient_tape import component_here
from collshim.tensorflow.tensor import Tensor, adopt, dtype_name, plain
from collshim.tensorflow.variable import Variable

_STATE_SIZE = 3
_WORD = 1 << 64
_PER_ELEMENT = 256  # the advance of the counter per element
_BITS = {torch.float16: 10, torch.bfloat16: 7, torch.float32: 23, torch.float64: 52}  # of a random fraction
_INTEGERS = (torch.int32, torch.int64, torch.uint32, torch.uint64)


class Algorithm(Enum):
    """The algorithm that generates random numbers; only PHILOX is supported, and AUTO_SELECT selects it."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


def create_rng_state(seed: Any, alg: Any) -> Tensor:
    """Return a generator's state, int64 ``(3,)``, for a seed: an integer or a list of integers."""
    _algorithm_of(alg)
    if isinstance(seed, int):
        parts = [(seed >> (64 * place)) % _WORD for place in range(_STATE_SIZE)]
    else:
        given = [int(part) for part in np.asarray(_plain_values(seed), dtype=object).reshape(-1)][:_STATE_SIZE]
        parts = [0] * (_STATE_SIZE - len(given)) + given
    return constant([_signed(part) for part in parts], torch.int64)


class Generator:
    """A random number generator whose state is a variable.

    Args:
        copy_from: a generator whose state and algorithm to copy.
        state: an int64 vector ``(3,)``: the counter's two words and the key; or a variable with such a vector, which is
            then used itself.
        alg: the algorithm, required with ``state``: ``"philox"``, ``Algorithm.PHILOX`` or 1.
    """

    def __init__(self, copy_from: Generator | None = None, state: Any = None, alg: Any = None) -> None:
        self._distribution_strategy = context.get_strategy() if context.has_strategy() else None
        if copy_from is None and (state is None or alg is None):
            raise also(ArgumentError, AssertionError)("a generator needs copy_from, or both state and alg")
        self._algorithm = copy_from.algorithm if copy_from is not None else _algorithm_of(alg)
        if copy_from is not None:
            state = copy_from.state.value()
        self._state = state if hasattr(state, "assign") else _state_variable(state)

    @classmethod
    def from_state(cls, state: Any, alg: Any) -> Generator:
        """Return a generator with this state."""
        return cls(alg=alg, state=state)

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """Return a generator whose state a seed determines: an integer or a list of integers."""
        algorithm = Algorithm.PHILOX if alg is None else alg
        return cls(state=create_rng_state(seed, algorithm), alg=algorithm)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """Return a generator with a random state."""
        state = [_signed(secrets.randbits(64)) for _ in range(_STATE_SIZE)]
        return cls(state=state, alg=Algorithm.PHILOX if alg is None else alg)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any) -> Generator:
        """Return a generator with this key and this counter, which has two words."""
        return cls(state=[*_plain_values(counter), int(key)], alg=alg)

    def reset(self, state: Any) -> None:
        """Set the state."""
        self._state.assign(_state_tensor(state))

    def reset_from_seed(self, seed: Any) -> None:
        """Set the state to the one that a seed determines."""
        self._state.assign(create_rng_state(seed, self._algorithm))

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        """Set the key, and the counter, which has two words."""
        self._state.assign(_state_tensor([*_plain_values(counter), int(key)]))

    @property
    def state(self) -> Any:
        """The variable with the state."""
        return self._state

    @property
    def algorithm(self) -> int:
        """The number of the algorithm: 1 for Philox."""
        return self._algorithm

    @property
    def key(self) -> Tensor:
        """The key, the last word of the state."""
        found: Tensor = self._state[-1]
        return found

    def skip(self, delta: Any) -> Any:
        """Advance the state as if ``delta`` random numbers were drawn; return the old state."""

        def advance(variable: Any) -> Tensor:
            before: Tensor = variable.value()
            low, high, key = (int(word) % _WORD for word in before.tolist())
            counter = low + (high << 64) + int(delta) * _PER_ELEMENT % _WORD
            variable.assign(constant([_signed(counter), _signed(counter >> 64), _signed(key)], torch.int64))
            return before

        strategy = self._distribution_strategy
        if strategy is None or (context.get_strategy() is strategy and not context.in_cross_replica_context()):
            return advance(component_here(self._state))
        with strategy.scope():
            return strategy.extended.update(self._state, advance)

    def _drawn(self, count: int) -> tuple[int, int]:
        """Return the key and the counter for the next ``count`` numbers, and advance the state."""
        before = self.skip(count)
        state = before.values[0] if hasattr(before, "values") and not isinstance(before, torch.Tensor) else before
        low, high, key = (int(word) % _WORD for word in state.tolist())
        replica = context.get_replica_context()
        if replica is not None and replica.strategy is self._distribution_strategy:
            key = int(philox.wide(key, int(replica.replica_id_in_sync_group), 1)[0])
        return key, low + (high << 64)

    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = torch.float32, name: str | None = None
    ) -> Tensor:
        """Return normally distributed numbers with this mean and standard deviation."""
        lengths, kind = _lengths(shape), torch_dtype(dtype)
        place = self._drawn(math.prod(lengths))
        return _scaled(_of_numbers(philox.normal, place, lengths, kind), stddev, mean)

    def uniform(
        self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = torch.float32, name: str | None = None
    ) -> Tensor:
        """Return numbers from ``minval`` to below ``maxval``; for integers, any value if both are None."""
        lengths, kind = _lengths(shape), torch_dtype(dtype)
        _require_range(kind, minval, maxval)
        return _uniform(self._drawn(math.prod(lengths)), lengths, minval, maxval, kind)

    def uniform_full_int(self, shape: Any, dtype: Any = torch.uint64, name: str | None = None) -> Tensor:
        """Return uniformly distributed integers over the dtype's whole range.

        Raises:
            InvalidArgumentError: ``dtype`` is not int32, int64, uint32 or uint64.
        """
        _require_integers(torch_dtype(dtype))
        return self.uniform(shape, None, None, dtype)

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = torch.float32, name: str | None = None
    ) -> Tensor:
        """Return normally distributed numbers within two standard deviations of the mean."""
        lengths, kind = _lengths(shape), torch_dtype(dtype)
        place = self._drawn(math.prod(lengths))
        return _scaled(_of_numbers(philox.truncated_normal, place, lengths, kind), stddev, mean)

    def make_seeds(self, count: int = 1) -> Tensor:
        """Return seeds for the stateless functions, int64 ``(2, count)``."""
        keys = plain(self.uniform_full_int([count], torch.int64))
        return adopt(torch.stack([keys, torch.zeros_like(keys)]))

    def split(self, count: int = 1) -> list[Generator]:
        """Return ``count`` independent generators with the same algorithm."""
        keys = self.uniform_full_int([count], torch.int64).tolist()
        return [Generator(state=[0, 0, key], alg=self._algorithm) for key in keys]


def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = torch.float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Return numbers from ``minval`` to below ``maxval``; the pair of seeds ``seed`` determines them."""
    kind = torch_dtype(dtype)
    _require_range(kind, minval, maxval)
    return _uniform(_scrambled(seed, alg), _lengths(shape), minval, maxval, kind)


def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = torch.float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Return normally distributed numbers; the pair of seeds ``seed`` determines them."""
    return _scaled(_of_numbers(philox.normal, _scrambled(seed, alg), _lengths(shape), torch_dtype(dtype)), stddev, mean)


def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = torch.float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Return normally distributed numbers within two standard deviations of the mean; ``seed`` determines them."""
    numbers = _of_numbers(philox.truncated_normal, _scrambled(seed, alg), _lengths(shape), torch_dtype(dtype))
    return _scaled(numbers, stddev, mean)


def split(seed: Any, num: int = 2, alg: Any = "auto_select") -> Tensor:
    """Return ``num`` seeds for the stateless functions, one in each row, from one seed; its dtype is kept."""
    given = convert_to_tensor(seed)
    return stateless_uniform([num, 2], given, None, None, given.dtype, alg=alg)


def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Tensor:
    """Return a seed for the stateless functions from a seed and a number, such as a replica's or a step's."""
    number = convert_to_tensor(data)
    drawn = stateless_uniform([], convert_to_tensor(seed), None, None, number.dtype, alg=alg)
    return adopt(torch.stack([plain(drawn), plain(number)]))


_GLOBAL: list[Generator] = []


def get_global_generator() -> Generator:
    """Return the global generator; unless it was set, its initial state is random."""
    if not _GLOBAL:
        _GLOBAL.append(Generator.from_non_deterministic_state())
    return _GLOBAL[0]


def set_global_generator(generator: Generator) -> None:
    """Make ``generator`` the global generator."""
    _GLOBAL[:] = [generator]


def _algorithm_of(alg: Any) -> int:
    value = alg.value if isinstance(alg, Algorithm) else alg
    found = {"philox": 1, "1": 1, "auto_select": 3, "3": 3}.get(str(value).lower())
    if found is None:
        raise ArgumentValueError(
            f"Argument `alg` got unsupported value {alg!r}. Supported values are 'philox' and 'auto_select' here."
        )
    return found


def _state_variable(state: Any) -> Any:
    return Variable(_state_tensor(state), trainable=False, name="StateVar", dtype=torch.int64)


def _state_tensor(state: Any) -> Tensor:
    words = np.asarray(_plain_values(state), dtype=object)
    found = constant([_signed(int(word)) for word in words.reshape(-1)], torch.int64, words.shape)
    found.shape.assert_is_compatible_with([_STATE_SIZE])
    return found


def _plain_values(values: Any) -> Any:
    return values.tolist() if hasattr(values, "tolist") else values.numpy() if hasattr(values, "numpy") else values


def _signed(word: int) -> int:
    low = word % _WORD
    return low - _WORD if low >= _WORD // 2 else low


def _scrambled(seed: Any, alg: Any) -> tuple[int, int]:
    _algorithm_of(alg)
    seeds = convert_to_tensor(seed)
    if list(seeds.shape) != [2]:
        raise invalid_argument(f"seed must have shape [2], not {list(seeds.shape)}")
    if seeds.dtype not in (torch.int32, torch.int64):
        raise invalid_argument(f"seed must be int32 or int64, is {dtype_name(seeds.dtype)}")
    first, second = (int(part) % _WORD for part in seeds.tolist())
    return philox.scrambled((first, second))


def _lengths(shape: Any) -> list[int]:
    lengths = lengths_of(shape)
    if any(length < 0 for length in lengths):
        raise invalid_argument(f"Dimension {min(lengths)} must be >= 0")
    return lengths


def _require_range(kind: torch.dtype, minval: Any, maxval: Any) -> None:
    if kind not in _BITS and (minval is None) != (maxval is None):
        raise ArgumentValueError(
            f"For integer dtype {DType(kind)!r}, minval and maxval must be both `None` or both non-`None`; got "
            f"minval={minval} and maxval={maxval}"
        )


def _scaled(numbers: Any, width: Any, start: Any) -> Tensor:
    found: Tensor = numbers * width + start
    return found


def _of_numbers(draw: Callable[..., Any], place: tuple[int, int], lengths: list[int], kind: torch.dtype) -> Tensor:
    numbers = draw(*place, math.prod(lengths), np.float64 if kind is torch.float64 else np.float32)
    return adopt(torch.from_numpy(numbers).reshape(lengths).to(kind))


def _uniform(place: tuple[int, int], lengths: list[int], minval: Any, maxval: Any, kind: torch.dtype) -> Tensor:
    count = math.prod(lengths)
    if kind in _BITS:
        drawn = adopt(torch.from_numpy(philox.uniform(*place, count, _BITS[kind])).reshape(lengths).to(kind))
        low, high = (convert_to_tensor(edge, kind) for edge in (minval, 1 if maxval is None else maxval))
        return _scaled(drawn, high - low, low)
    _require_integers(kind)
    bits = philox.wide(*place, count) if kind in (torch.int64, torch.uint64) else philox.words(*place, count)
    if minval is None:
        return adopt(torch.from_numpy(bits.astype(DType(kind).as_numpy_dtype)).reshape(lengths))
    first, end = int(minval), int(maxval)
    if first >= end:
        raise invalid_argument(f"Need minval < maxval, got {first} >= {end}")
    whole = (bits % bits.dtype.type(end - first)).astype(DType(kind).as_numpy_dtype)
    return adopt(torch.from_numpy(np.asarray(whole + whole.dtype.type(first))).reshape(lengths))


def _require_integers(kind: torch.dtype) -> None:
    if kind not in _INTEGERS:
        raise invalid_argument(f"dtype is {dtype_name(kind)}, should be one of int32, int64, uint32, uint64")
