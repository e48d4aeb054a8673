"""Strategies that never have more than one replica: ``OneDeviceStrategy``, and the default one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from collshim.tensorflow.config.logical import LogicalDevice
from collshim.tensorflow.distribute import stack
from collshim.tensorflow.distribute.devices import canonical
from collshim.tensorflow.distribute.extended import StrategyExtended
from collshim.tensorflow.distribute.input_context import InputContext
from collshim.tensorflow.distribute.replica_context import DefaultReplicaContext
from collshim.tensorflow.distribute.strategy import Strategy


class OneDeviceStrategy(Strategy):
    """One replica, in the caller's thread: collectives return copies of their inputs.

    Args:
        device: the device's name, such as ``"/cpu:0"`` or ``"GPU:0"``, or a logical device; None for the CPU. Data does
            not move.

    Raises:
        ValueError: no device has such a name.
    """

    def __init__(self, device: str | LogicalDevice | None) -> None:
        super().__init__(OneDeviceExtended(self, device))


class _OneReplicaExtended(StrategyExtended):
    _wraps_values = False


class OneDeviceExtended(_OneReplicaExtended):
    """The methods of a strategy with one replica."""

    def __init__(self, container_strategy: Strategy, device: str | LogicalDevice | None) -> None:
        super().__init__(container_strategy)
        self._devices = (canonical(device),)


class _DefaultStrategy(Strategy):
    def __init__(self) -> None:
        super().__init__(_DefaultExtended(self))


class _DefaultExtended(_OneReplicaExtended):
    def _distribute_dataset(self, dataset: Any, options: Any) -> Any:
        return dataset

    def _distribute_datasets(self, dataset_fn: Callable[[Any], Any], options: Any) -> Any:
        return dataset_fn(InputContext())

    @property
    def worker_devices(self) -> tuple[str, ...]:
        raise _unsupported("worker_devices")

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        raise _unsupported("parameter_devices")

    def non_slot_devices(self, var_list: Any) -> Any:
        """Return the variable whose name is the first in order, in place of a device."""
        return min(var_list, key=lambda variable: variable.name)


def _unsupported(method: str) -> Exception:
    return stack.ContextError(f"{method}() method unsupported by default tf.distribute.Strategy.")


_default = _DefaultStrategy()
stack.set_default(_default, DefaultReplicaContext(_default, 0))
