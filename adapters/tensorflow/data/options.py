"""``tf.data.Options``, of which only the sharding between workers has an effect. Source: TensorFlow 2.21."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar

from collshim.errors import ArgumentError, ArgumentTypeError, also


class AutoShardPolicy(IntEnum):
    """The policy by which each worker reads a part of each batch, or the whole batch (OFF)."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class _Settings:
    """Attributes with a type each; None, or the default, counts as not set.

    Raises:
        AttributeError: there is no such attribute.
        TypeError: the value has a different type.
    """

    _types: ClassVar[dict[str, type]] = {}
    _defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        for name, kind in self._types.items():
            made = kind() if issubclass(kind, _Settings) else self._defaults.get(name)
            object.__setattr__(self, name, made)

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self._types.get(name)
        if kind is None:
            raise also(ArgumentError, AttributeError)(f"Cannot set the property {name} on {type(self).__name__}.")
        if not isinstance(value, kind):
            raise ArgumentTypeError(f'Property "{name}" must be of type {kind}, got: {value} (type: {type(value)})')
        object.__setattr__(self, name, value)

    def merged(self, other: Any) -> Any:
        """Return new settings: those that are set in ``other``, and the rest from here."""
        found = type(self)()
        for name, kind in self._types.items():
            own, given = getattr(self, name), getattr(other, name)
            if issubclass(kind, _Settings):
                object.__setattr__(found, name, own.merged(given))
            else:
                object.__setattr__(found, name, own if given == self._defaults.get(name) else given)
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and vars(self) == vars(other)

    __hash__ = object.__hash__


class DistributeOptions(_Settings):
    """The options for the distribution of a dataset.

    Attributes:
        auto_shard_policy: whether workers share each batch (AUTO, DATA, FILE), even if it is read from files, or each
            takes the rows of all batches (OFF, HINT).
        num_devices: without effect.
    """

    auto_shard_policy: AutoShardPolicy
    num_devices: int | None
    _types: ClassVar = {"auto_shard_policy": AutoShardPolicy, "num_devices": int}
    _defaults: ClassVar = {"auto_shard_policy": AutoShardPolicy.AUTO}


class ThreadingOptions(_Settings):
    """The options for threads; they have no effect: elements are computed on demand, in the caller's thread."""

    _types: ClassVar = {"max_intra_op_parallelism": int, "private_threadpool_size": int}


class AutotuneOptions(_Settings):
    """The options for automatic tuning; they have no effect."""

    _types: ClassVar = {
        "autotune_algorithm": object,
        "cpu_budget": int,
        "enabled": bool,
        "initial_parallelism": int,
        "min_parallelism": int,
        "ram_budget": int,
    }


class OptimizationOptions(_Settings):
    """The options for the optimization of datasets; they have no effect."""

    _types: ClassVar = dict.fromkeys(
        (
            "apply_default_optimizations",
            "filter_fusion",
            "filter_parallelization",
            "inject_prefetch",
            "map_and_batch_fusion",
            "map_and_filter_fusion",
            "map_fusion",
            "map_parallelization",
            "noop_elimination",
            "parallel_batch",
            "seq_interleave_prefetch",
            "shuffle_and_repeat_fusion",
        ),
        bool,
    )


class Options(_Settings):
    """The options of a dataset.

    Attributes:
        experimental_distribute: the options for its distribution; all others have no effect.
        deterministic: None; without effect: the order is always the same.
    """

    autotune: AutotuneOptions
    deterministic: bool | None
    experimental_distribute: DistributeOptions
    experimental_optimization: OptimizationOptions
    threading: ThreadingOptions
    _types: ClassVar = {
        "autotune": AutotuneOptions,
        "dataset_name": str,
        "deterministic": bool,
        "experimental_distribute": DistributeOptions,
        "experimental_external_state_policy": object,
        "experimental_optimization": OptimizationOptions,
        "experimental_slack": bool,
        "experimental_symbolic_checkpoint": bool,
        "experimental_warm_start": bool,
        "framework_type": list,
        "threading": ThreadingOptions,
    }
    _older: ClassVar = {"experimental_deterministic": "deterministic", "experimental_threading": "threading"}

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(self._older.get(name, name), value)

    @property
    def experimental_deterministic(self) -> bool | None:
        """``deterministic``, by its older name."""
        return self.deterministic

    @property
    def experimental_threading(self) -> Any:
        """``threading``, by its older name."""
        return vars(self)["threading"]

    def merge(self, options: Options) -> Options:
        """Return new options: those that are set in ``options``, and the rest from here."""
        found: Options = self.merged(options)
        return found
