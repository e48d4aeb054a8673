"""Physical and logical devices of ``tf.config``; expected results are from TensorFlow 2.21 on a CPU."""

from __future__ import annotations

import pytest

import collshim
import collshim.tensorflow as tf
from collshim.tensorflow.config import logical

pytestmark = pytest.mark.unranked

PART = tf.config.LogicalDeviceConfiguration


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what the program has configured."""
    monkeypatch.setattr(logical, "_STATE", logical._State())


def cpu() -> tf.config.PhysicalDevice:
    return tf.config.list_physical_devices("CPU")[0]


def test_divided_cpu_gives_a_replica_for_each_part() -> None:
    tf.config.set_logical_device_configuration(cpu(), [PART()] * 3)
    assert tf.config.get_logical_device_configuration(cpu()) == [PART()] * 3
    devices = tf.config.list_logical_devices("CPU")
    assert [device.name for device in devices] == ["/device:CPU:0", "/device:CPU:1", "/device:CPU:2"]
    wanted = tuple(f"/job:localhost/replica:0/task:0/device:CPU:{number}" for number in range(3))
    for strategy in (tf.distribute.MirroredStrategy(devices), tf.distribute.MirroredStrategy()):
        assert strategy.extended.worker_devices == wanted
    with tf.device(devices[2]):
        assert tf.distribute.OneDeviceStrategy(devices[2]).extended.worker_devices == wanted[2:]


def test_whole_cpu_has_no_parts() -> None:
    assert tf.config.get_logical_device_configuration(cpu()) is None
    assert repr(tf.config.list_logical_devices("CPU")) == "[LogicalDevice(name='/device:CPU:0', device_type='CPU')]"
    assert repr(cpu()) == "PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')"


def test_older_names_configure_the_same_devices() -> None:
    older = tf.config.experimental
    older.set_virtual_device_configuration(cpu(), [older.VirtualDeviceConfiguration()] * 2)
    assert older.get_virtual_device_configuration(cpu()) == [PART()] * 2
    assert len(older.list_logical_devices()) == 2


def test_devices_cannot_change_once_they_were_listed() -> None:
    tf.config.set_logical_device_configuration(cpu(), [PART()] * 2)
    tf.config.list_logical_devices()
    tf.config.set_logical_device_configuration(cpu(), [PART()] * 2)
    with pytest.raises(RuntimeError, match=r"^Virtual devices cannot be modified after being initialized$"):
        tf.config.set_logical_device_configuration(cpu(), [PART()])
    with pytest.raises(RuntimeError, match=r"^Visible devices cannot be modified after being initialized$"):
        tf.config.set_visible_devices([], "CPU")


def test_unknown_devices_and_limits_of_the_cpu_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^Unrecognized device: 'x'$"):
        tf.config.set_logical_device_configuration("x", [PART()])
    with pytest.raises(ValueError, match=r"^Setting memory limit on CPU virtual devices is currently not supported$"):
        tf.config.set_logical_device_configuration(cpu(), [PART(memory_limit=100)])
    with pytest.raises(ValueError, match=r"^Cannot set memory growth on non-GPU and non-Pluggable devices$"):
        tf.config.experimental.set_memory_growth(cpu(), True)


def test_pretended_gpus_are_divided_and_hidden() -> None:
    with collshim.options(device="cpu", devices=2):
        first, second = tf.config.list_physical_devices("GPU")
        tf.config.experimental.set_memory_growth(second, True)
        assert [tf.config.experimental.get_memory_growth(one) for one in (first, second)] == [False, True]
        tf.config.set_logical_device_configuration(first, [PART(memory_limit=1024)] * 2)
        assert tf.config.get_visible_devices("GPU") == [first, second]
        tf.config.set_visible_devices(first, "GPU")
        assert tf.config.get_visible_devices("GPU") == [first]
        assert [one.name for one in tf.config.list_logical_devices("GPU")] == ["/device:GPU:0", "/device:GPU:1"]
        assert tf.distribute.MirroredStrategy().num_replicas_in_sync == 2
