"""Names beside ``tf.distribute`` that programs of distributed training call, such as switches of ``tf.config``.

Source of the expected values: TensorFlow 2.21, on two CPUs.
"""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import Any

import pytest
import torch

import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored

KERAS = pytest.mark.skipif(find_spec("keras") is None, reason="Keras is not installed: pip install collshim[keras]")


def test_classes_of_distributed_values_tell_values_apart() -> None:
    kinds = tf.types.experimental.distributed
    strategy = mirrored(2)
    values = strategy.experimental_distribute_values_from_function(lambda _: tf.constant(1.0))
    assert isinstance(values, kinds.PerReplica)
    assert not isinstance(values, kinds.Mirrored)
    assert isinstance(strategy.extended.broadcast_to(tf.constant(1.0), values), kinds.Mirrored)
    with strategy.scope():
        together = tf.Variable(1.0)
        alone = tf.Variable(1.0, synchronization=tf.VariableSynchronization.ON_READ)
    assert isinstance(together, kinds.Mirrored)
    for variable in (together, alone):
        assert not isinstance(variable, kinds.PerReplica)
    assert not isinstance(alone, kinds.Mirrored)


def test_annotations_can_name_what_counts_as_a_tensor() -> None:
    assert isinstance(tf.constant(1), tf.types.experimental.TensorLike)
    assert not isinstance(tf.Module(), tf.types.experimental.TensorLike)


@KERAS
def test_parts_of_keras_have_short_names() -> None:
    assert tf.optimizers.SGD is tf.keras.optimizers.SGD
    assert tf.losses is tf.keras.losses
    assert tf.compat.v2.metrics is tf.metrics
    assert tf.initializers.Zeros is tf.keras.initializers.Zeros
    with pytest.raises(AttributeError):
        tf.compat.v1.optimizers  # noqa: B018


def test_the_release_and_the_logger() -> None:
    assert tf.version.VERSION == tf.__version__ == "2.21.0"
    assert tf.version.GIT_VERSION == "unknown"
    assert tf.get_logger() is logging.getLogger("tensorflow")


def test_tensors_have_no_names() -> None:
    for name in ("name", "op", "graph", "value_index"):
        assert not hasattr(tf.constant(1.0), name)
        with pytest.raises(AttributeError, match=f"Tensor.{name} is undefined when eager execution is enabled"):
            getattr(tf.constant(1.0), name)
    assert getattr(tf.Variable(1.0, name="mine"), "name", "none") == "mine:0"


def test_matrices_for_initial_values() -> None:
    matrices = tf.reshape(tf.range(8.0), [2, 2, 2])
    assert tf.linalg.trace(matrices).numpy().tolist() == [3.0, 11.0]
    assert int(tf.linalg.trace([[1, 2], [3, 4]])) == 5
    assert tf.linalg.matrix_transpose(matrices).numpy()[0].tolist() == [[0.0, 2.0], [1.0, 3.0]]
    turned = tf.linalg.matrix_transpose(tf.constant([[1 + 2j]]), conjugate=True)
    assert turned.numpy().tolist() == [[1 - 2j]]
    assert tf.linalg.tensor_diag([1, 2]).numpy().tolist() == [[1, 0], [0, 2]]
    assert tf.linalg.tensor_diag_part(tf.linalg.tensor_diag([[1, 2], [3, 4]])).numpy().tolist() == [[1, 2], [3, 4]]
    for wrong in (tf.ones([2, 3]), tf.ones([2])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="the second half of the axes should be as long"):
            tf.linalg.tensor_diag_part(wrong)


@pytest.mark.parametrize(("full", "shapes"), [(False, [(4, 3), (3, 3)]), (True, [(4, 4), (4, 3)])])
def test_matrices_are_factored(full: bool, shapes: list[Any]) -> None:
    matrix = tf.constant([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0], [1.0, 1.0, 1.0], [0.0, 2.0, 1.0]])
    factors = tf.linalg.qr(matrix, full_matrices=full)
    assert [tuple(factor.shape) for factor in factors] == shapes
    assert abs((factors.q @ factors.r - matrix).numpy()).max() < 1e-5


def test_permutations_are_inverted() -> None:
    found = tf.math.invert_permutation(tf.constant([3, 0, 2, 1], tf.int64))
    assert found.numpy().tolist() == [1, 3, 2, 0]
    assert found.dtype == tf.int64
    for wrong in ([0, 0], [[0]], [0.0], [1, 2]):
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="x should be a vector with each number from 0 on once"
        ):
            tf.math.invert_permutation(wrong)


def test_hints_for_tpus_are_options() -> None:
    options = tf.distribute.RunOptions(experimental_xla_options=tf.tpu.XLAOptions(False))
    assert options.experimental_xla_options.use_spmd_for_xla_partitioning is False


def test_choices_for_a_compiler_are_stored() -> None:
    optimizer = tf.config.optimizer
    for choice, found in ((True, "autoclustering"), ("autoclustering", "autoclustering"), (False, ""), ("x", "")):
        optimizer.set_jit(choice)
        assert optimizer.get_jit() == found
    optimizer.set_experimental_options({"constant_folding": True})
    assert optimizer.get_experimental_options()["constant_folding"] is True
    assert optimizer.get_experimental_options()["disable_meta_optimizer"] is False
    assert tf.config.experimental_functions_run_eagerly() is True


def test_threads_are_torchs() -> None:
    before, threading = torch.get_num_threads(), tf.config.threading
    assert (threading.get_intra_op_parallelism_threads(), threading.get_inter_op_parallelism_threads()) == (0, 0)
    try:
        threading.set_intra_op_parallelism_threads(1)
        assert torch.get_num_threads() == threading.get_intra_op_parallelism_threads() == 1
    finally:
        torch.set_num_threads(before)
        threading.set_intra_op_parallelism_threads(0)
    threading.set_inter_op_parallelism_threads(3)
    assert threading.get_inter_op_parallelism_threads() == 3
    threading.set_inter_op_parallelism_threads(0)


def test_determinism_and_precision_are_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    experimental = tf.config.experimental
    try:
        experimental.enable_op_determinism()
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(False)
    before = experimental.tensor_float_32_execution_enabled()
    experimental.enable_tensor_float_32_execution(not before)
    assert torch.backends.cuda.matmul.allow_tf32 is experimental.tensor_float_32_execution_enabled() is not before
    experimental.enable_tensor_float_32_execution(before)


def test_devices_are_described() -> None:
    experimental, (cpu,) = tf.config.experimental, tf.config.list_physical_devices("CPU")
    assert experimental.get_memory_info("CPU:0") == {"current": 0, "peak": 0}
    assert experimental.get_memory_usage("CPU:0") == 0
    experimental.reset_memory_stats("CPU:0")
    assert experimental.get_device_details(cpu) == {}
    experimental.set_device_policy("silent")
    experimental.set_synchronous_execution(True)
    assert (experimental.get_device_policy(), experimental.get_synchronous_execution()) == ("silent", True)


def test_a_real_gpus_memory_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    reset: list[Any] = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda place: 10 + place)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda place: 20 + place)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", reset.append)
    assert tf.config.experimental.get_memory_info("GPU:1") == {"current": 11, "peak": 21}
    tf.config.experimental.reset_memory_stats("GPU:1")
    assert reset == [1]
