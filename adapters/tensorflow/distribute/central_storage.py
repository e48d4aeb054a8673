"""``tf.distribute.experimental.CentralStorageStrategy``: replicas are threads, and share their variables."""

from __future__ import annotations

from collections.abc import Sequence

from collshim.adapting.absent import saying
from collshim.tensorflow.config.logical import LogicalDevice
from collshim.tensorflow.distribute.devices import canonical
from collshim.tensorflow.distribute.mirrored import MirroredExtended, named
from collshim.tensorflow.distribute.strategy import Strategy


class CentralStorageStrategy(Strategy):
    """One replica per device, all in this process; each variable exists once, for all replicas.

    Args:
        compute_devices: names as for ``MirroredStrategy``; a device may be named twice. By default there is one replica
            for each logical GPU, or, without GPUs, one on the CPU.
        parameter_device: the name of the device of variables; data does not move. By default it is the only device of
            the replicas, or the CPU.

    Raises:
        ValueError: a device has no such name.
    """

    def __init__(
        self,
        compute_devices: Sequence[str | LogicalDevice] | None = None,
        parameter_device: str | LogicalDevice | None = None,
    ) -> None:
        super().__init__(_CentralExtended(self, compute_devices, parameter_device))


class _CentralExtended(MirroredExtended):
    def __init__(
        self,
        container_strategy: Strategy,
        devices: Sequence[str | LogicalDevice] | None,
        parameter_device: str | LogicalDevice | None,
    ) -> None:
        super().__init__(container_strategy, devices, limits_dtypes=True)
        self._makes_variables = self._shares_variables = self._num_replicas > 1
        alone = self._devices[0] if self._num_replicas == 1 else "CPU:0"
        self._parameter_device = canonical(parameter_device or alone)

    def _devices_of(self, devices: Sequence[str | LogicalDevice] | None) -> tuple[str, ...]:
        names = named(devices)
        return names if devices or "GPU" in names[0] else names[:1]

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The name of the device of variables."""
        return (self._parameter_device,)


__getattr__ = saying(__name__)
