"""Small parts of TensorFlow that programs use around strategies; expected results are from TensorFlow 2.21 on CPUs."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored

pytestmark = pytest.mark.threads

MODULES = (
    *("", "compat", "config", "config.experimental", "data", "data.experimental", "distribute", "dtypes", "errors"),
    *("distribute.cluster_resolver", "distribute.experimental", "experimental", "io", "io.gfile", "linalg", "math"),
    *("nest", "nn", "random", "tpu", "summary", "summary.experimental", "tpu.experimental", "train"),
    *("autograph", "autograph.experimental", "saved_model"),
)


@pytest.mark.parametrize("module", MODULES)
def test_missing_name_is_explained_shortly(module: str) -> None:
    found = importlib.import_module(f"collshim.tensorflow.{module}".rstrip("."))
    with pytest.raises(AttributeError, match=f"^module '{found.__name__}' has no attribute 'Nothing': ") as said:
        _ = found.Nothing
    assert isinstance(said.value, collshim.CollshimError)
    assert len(str(said.value)) < 320
    assert all(hasattr(found, name) for name in vars(found).get("__all__", ()))


def test_compat_v2_has_the_names_of_the_module() -> None:
    import collshim.tensorflow.compat.v2 as tf2

    assert tf2.constant is tf.constant
    assert tf.compat.v2.distribute.MirroredStrategy is tf.distribute.MirroredStrategy
    assert "Variable" in dir(tf2)
    with pytest.raises(AttributeError, match=r"use torch\.export, or keras's save"):
        _ = tf.saved_model.save
    assert not tf.saved_model.SaveOptions().save_debug_info
    assert tf.saved_model.LoadOptions(allow_partial_checkpoint=True).allow_partial_checkpoint


def test_compat_v1_makes_variables_and_refuses_graphs() -> None:
    v1: Any = importlib.import_module("collshim.tensorflow.compat.v1")
    assert (tf.compat.v1, v1.constant) == (v1, tf.constant)
    with mirrored(2).scope():
        made = v1.Variable(1.0, collections=[], use_resource=True, aggregation=v1.VariableAggregation.SUM)
        zeros = v1.get_variable("zeros", [2], initializer=v1.zeros_initializer, dtype=tf.int32)
    assert (type(made).__name__, zeros.name, zeros.numpy().tolist()) == ("MirroredVariable", "zeros:0", [0, 0])
    assert v1.get_variable("drawn", [3, 4]).shape == (3, 4)
    assert v1.get_variable("given", initializer=5).dtype is tf.int32
    assert v1.global_variables_initializer() is v1.enable_v2_behavior() is None
    with pytest.raises(AttributeError, match="graphs and sessions"):
        _ = v1.Session


def test_slices_become_dense_with_rows_of_one_index_added() -> None:
    slices = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([0, 0]), tf.constant([3, 1]))
    assert tf.convert_to_tensor(slices).numpy().tolist() == [[3.0], [0.0], [0.0]]
    assert tf.square(-slices).numpy().tolist() == [[9.0], [0.0], [0.0]]
    with pytest.raises(ValueError, match=r"^Incompatible tensor conversion requested to `dtype` int32 for IndexedSl"):
        tf.convert_to_tensor(slices, tf.int32)
    with pytest.raises(ValueError, match="for argument `value` without dense_shape: IndexedSlices"):
        tf.convert_to_tensor(tf.IndexedSlices(slices.values, slices.indices))


@pytest.mark.parametrize("function", [lambda x: tf.cast(x, tf.float32), tf.convert_to_tensor, tf.square])
def test_distributed_values_are_no_tensor(function: Callable[[Any], Any]) -> None:
    values = mirrored(2).experimental_distribute_values_from_function(lambda ctx: tf.constant(1.0))
    with pytest.raises(
        ValueError, match=r"^It looks like you are using a PerReplica object while not inside a replica"
    ):
        function(values)


def test_gradients_of_graphs_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"^tf.gradients is not supported when eager execution is enabled"):
        tf.gradients(tf.constant(1.0), tf.constant(2.0))
    with pytest.raises(RuntimeError, match=r"in the block of a tf.GradientTape"):
        tf.function(tf.gradients)(tf.constant(1.0), tf.constant(2.0))


def test_recomputed_gradient_calls_the_function_again() -> None:
    calls, weight, x = [], tf.Variable(2.0), tf.constant(3.0)

    @tf.recompute_grad
    def square(x: Any) -> Any:
        calls.append(1)
        return tf.exp(tf.square(x) * weight)

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.log(square(x))
    assert len(calls) == 1
    assert [float(one) for one in tape.gradient(y, [x, weight])] == pytest.approx([12.0, 9.0])
    assert len(calls) == 2


@pytest.mark.parametrize("replicas", [1, 2])
def test_iterators_end_with_an_empty_optional(replicas: int) -> None:
    dataset = tf.data.Dataset.range(3).batch(2)
    for elements in (dataset, mirrored(replicas).experimental_distribute_dataset(dataset)):
        iterator = iter(elements)
        first, _, last = (iterator.get_next_as_optional() for _ in range(3))
        assert (bool(first.has_value()), bool(last.has_value())) == (True, False)
        assert first.element_spec is not None
        with pytest.raises(tf.errors.InvalidArgumentError, match="The given optional does not have a value"):
            last.get_value()


def test_optional_is_made_of_a_value_or_of_none() -> None:
    made = tf.experimental.Optional.from_value((tf.constant(3), 2.5))
    assert [float(one) for one in made.get_value()] == [3.0, 2.5]
    assert repr(made.element_spec[1]) == "TensorSpec(shape=(), dtype=tf.float32, name=None)"
    empty = tf.experimental.Optional.empty(tf.TensorSpec((), tf.int32))
    assert not empty.has_value()
    assert empty.element_spec == tf.TensorSpec((), tf.int32)


def test_tensor_spec_describes_tensors() -> None:
    spec = tf.TensorSpec((None, 3), tf.float32, "x")
    assert repr(spec) == "TensorSpec(shape=(None, 3), dtype=tf.float32, name='x')"
    assert spec.is_compatible_with(tf.zeros((2, 3)))
    assert not spec.is_compatible_with(tf.zeros((2, 4)))
    assert spec != tf.TensorSpec((None, 3), tf.float32)
    assert repr(tf.TensorSpec(None)) == "TensorSpec(shape=<unknown>, dtype=tf.float32, name=None)"


def test_files_are_written_read_and_deleted(tmp_path: Path) -> None:
    gfile = tf.io.gfile
    folder = gfile.join(str(tmp_path), "a", "b")
    gfile.makedirs(folder)
    gfile.makedirs(folder)
    with gfile.GFile(f"{folder}/one", "w") as file:
        file.write("text\n")
    gfile.copy(f"{folder}/one", f"{folder}/two")
    with pytest.raises(tf.errors.AlreadyExistsError):
        gfile.rename(f"{folder}/one", f"{folder}/two")
    gfile.rename(f"{folder}/one", f"{folder}/two", overwrite=True)
    assert gfile.glob(f"{folder}/*") == [f"{folder}/two"]
    with gfile.GFile(f"{folder}/two") as file:
        assert (gfile.listdir(folder), file.readlines()) == (["two"], ["text\n"])
    gfile.rmtree(str(tmp_path / "a"))
    assert not gfile.exists(folder)
    for missing in (gfile.rmtree, gfile.remove, gfile.listdir, lambda path: gfile.GFile(path).read()):
        with pytest.raises(tf.errors.NotFoundError):
            missing(folder)


def test_options_of_input_are_accepted() -> None:
    strategy, dataset = mirrored(2), tf.data.Dataset.range(4).batch(2)
    options = tf.distribute.InputOptions(experimental_fetch_to_device=False)
    assert len(list(strategy.experimental_distribute_dataset(dataset, options))) == 2


def test_options_of_datasets_without_effect_are_accepted() -> None:
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.experimental_optimization.map_parallelization = True
    options.autotune.enabled = options.deterministic = False
    assert [int(one) for one in tf.data.Dataset.range(3).with_options(options)] == [0, 1, 2]
    with pytest.raises(TypeError, match=r"^options is a int, should be a tf\.data\.Options$"):
        tf.data.Dataset.range(3).with_options(3)  # type: ignore[arg-type]


class Kept:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.found: list[Any] = []

    def add_scalar(self, *values: Any, new_style: bool) -> None:
        self.found.append(values)

    def flush(self) -> None: ...


def test_summaries_need_a_writer_that_records() -> None:
    kept = Kept()
    writer = tf.summary.SummaryWriter(kept)
    assert not tf.summary.scalar("none", 1.0, step=0)
    with writer.as_default(3):
        assert tf.summary.scalar("loss", tf.constant(0.5))
        assert tf.summary.scalar("loss", 0.25, step=4)
        with tf.summary.record_if(lambda: False):
            assert not tf.summary.scalar("loss", 0.0)
    with writer.as_default(), pytest.raises(ValueError, match=r"^No step set\. Please specify one"):
        tf.summary.scalar("loss", 0.0)
    assert kept.found == [("loss", 0.5, 3), ("loss", 0.25, 4)]


def test_summaries_take_the_step_that_was_set() -> None:
    kept, step = Kept(), tf.Variable(3, dtype=tf.int64)
    writer: Any = tf.summary.SummaryWriter(kept)
    assert not tf.summary.should_record_summaries()  # there is no writer
    tf.summary.experimental.set_step(step)
    try:
        with writer.as_default():
            assert tf.summary.should_record_summaries()
            tf.summary.scalar("loss", 0.5)
            with tf.summary.create_noop_writer().as_default(5):
                assert tf.summary.experimental.get_step() is step
        with writer.as_default(7):
            assert tf.summary.experimental.get_step() == 7
            tf.summary.experimental.set_step(9)
        assert tf.summary.experimental.get_step() is step
    finally:
        tf.summary.experimental.set_step(None)
    nothing = tf.summary.create_noop_writer()
    for call in (nothing.set_as_default, nothing.init, nothing.flush, nothing.close, writer.init):
        call()
    assert not tf.summary.should_record_summaries()
    assert kept.found == [("loss", 0.5, 3)]


def test_hints_to_a_compiler_do_nothing() -> None:
    tf.autograph.set_verbosity(1)
    tf.autograph.experimental.set_loop_options(shape_invariants=[])
    for decorator in (tf.autograph.experimental.do_not_convert, tf.autograph.experimental.do_not_convert()):
        assert decorator(len) is len
    with tf.experimental.async_scope():
        tf.experimental.async_clear_error()


def test_file_has_a_length_and_a_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("abc")
    found = tf.io.gfile.stat(tmp_path / "file")
    assert (found.length, found.is_directory, found.mtime_nsec > 1e18) == (3, False, True)
    assert tf.io.gfile.stat(tmp_path).is_directory
    with pytest.raises(tf.errors.NotFoundError, match="No such file"):
        tf.io.gfile.stat(tmp_path / "none")


def test_functions_have_their_names_and_can_be_pickled() -> None:
    for function in (tf.abs, tf.add, tf.nn.tanh, tf.nn.softplus, tf.reduce_max, tf.math.segment_sum):
        assert pickle.loads(pickle.dumps(function)) is function
    assert [tf.nn.tanh.__name__, tf.add.__name__, tf.nn.elu.__name__] == ["tanh", "add", "elu"]
    assert tf.debugging.assert_less.__name__ == "assert_less"
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"^add: "):
        tf.add([1, 2], [1, 2, 3])


def test_references_can_be_sorted() -> None:
    references = [tf.constant(1).ref(), tf.Variable(2).ref(), tf.Variable(3).ref()]
    assert len(sorted(references)) == 3


@pytest.mark.parametrize(
    ("condition", "first", "second", "found"),
    [
        ([True, False], [[1, 2], [3, 4]], [[5, 6], [7, 8]], [[1, 2], [7, 8]]),
        ([[True, False], [False, True]], [[1, 2], [3, 4]], [[5, 6], [7, 8]], [[1, 6], [7, 4]]),
        (True, [1, 2], [3, 4], [1, 2]),
        ([True, False, True], None, None, [[0], [2]]),
    ],
)
def test_the_older_where_chooses_rows(condition: object, first: object, second: object, found: object) -> None:
    assert tf.compat.v1.where(condition, first, second).numpy().tolist() == found


def test_the_older_where_does_not_broadcast() -> None:
    for first, second in (([1, 2], 5), ([1, 2], [3]), ([1, 2, 3], [4, 5, 6])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Inputs to operation Select must have the same shape"):
            tf.compat.v1.where([True, False], first, second)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ([4], "6 values, but the requested shape has 4$"),
        ([4, -1], "6 values, but the requested shape requires a multiple of 4$"),
        ([0, -1], "6 values, but the requested shape has 0$"),
        ([1, 1, -2], "^Size 2 must be non-negative, not -2$"),
        ([-1, -1], "^Only one input size may be -1, not both 0 and 1$"),
    ],
)
def test_an_impossible_shape_is_refused_in_tensorflows_words(shape: list[int], text: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        tf.reshape(tf.range(6), shape)


def test_dropout_by_a_tensor_may_drop_everything() -> None:
    assert tf.nn.dropout(tf.ones([3]), tf.constant(1.0)).numpy().tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="rate must be a scalar tensor or a float in the range"):
        tf.nn.dropout(tf.ones([3]), 1.0)
