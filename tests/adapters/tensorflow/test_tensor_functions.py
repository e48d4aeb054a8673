"""Functions on tensors that programs of ``tf.distribute`` use, with the results of TensorFlow 2.21."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

import collshim.tensorflow as tf


def listed(value: Any) -> Any:
    return [listed(one) for one in value] if isinstance(value, list | tuple) else value.numpy().tolist()


t = tf.constant
CASES: list[tuple[Any, Any]] = [
    (lambda: tf.math.segment_sum(t([1.0, 2.0, 3.0]), t([0, 0, 2])), [3.0, 0.0, 3.0]),
    (lambda: tf.math.segment_mean(t([1.0, 2.0, 3.0]), t([0, 0, 2])), [1.5, 0.0, 3.0]),
    (lambda: tf.math.unsorted_segment_sum(t([[1], [2], [3]]), t([2, -1, 2]), 3), [[0], [0], [4]]),
    (lambda: tf.math.unsorted_segment_max(t([1, 5, 3]), t([0, 0, 1]), 2), [5, 3]),
    (lambda: tf.cumsum(t([1, 2, 3]), exclusive=True), [0, 1, 3]),
    (lambda: tf.cumsum(t([1, 2, 3]), reverse=True), [6, 5, 3]),
    (lambda: tf.math.cumprod(t([1, 2, 3])), [1, 2, 6]),
    (lambda: tf.math.top_k(t([1, 5, 3]), 2), [[5, 3], [1, 2]]),
    (lambda: tf.math.accumulate_n([t([1]), t([2])]), [3]),
    (lambda: tf.math.count_nonzero(t([[1, 0], [2, 3]]), axis=0), [2, 1]),
    (lambda: tf.math.squared_difference(t([3.0]), t([1.0])), [4.0]),
    (lambda: tf.truediv(t([3]), t([2])), [1.5]),
    (lambda: tf.math.scalar_mul(2, t([1.5])), [3.0]),
    (lambda: tf.math.atan2(t([0.0]), t([1.0])), [0.0]),
    (lambda: tf.reduce_logsumexp(t([0.0])), 0.0),
    (lambda: tf.boolean_mask(t([[1], [2], [3]]), [True, False, True]), [[1], [3]]),
    (lambda: tf.repeat(t([1, 2]), [1, 2]), [1, 2, 2]),
    (lambda: tf.reverse(t([[1, 2]]), [1]), [[2, 1]]),
    (lambda: tf.slice(t([[1, 2], [3, 4]]), [0, 1], [-1, 1]), [[2], [4]]),
    (lambda: tf.pad(t([[1]]), [[0, 1], [1, 0]]), [[0, 1], [0, 0]]),
    (lambda: tf.pad(t([1, 2]), [[1, 1]], "REFLECT"), [2, 1, 2, 1]),
    (lambda: tf.pad(t([1, 2]), [[1, 1]], "symmetric"), [1, 1, 2, 2]),
    (lambda: tf.pad(t([2**40 + 1], tf.int64), [[1, 0]], constant_values=2**53 + 1), [2**53 + 1, 2**40 + 1]),
    (lambda: tf.pad(t([True]), [[1, 0]]), [False, True]),
    (lambda: tf.math.unsorted_segment_mean(t([1, 2]), t([0, 0]), 2), [1.5, 0.0]),
    (lambda: tf.math.squared_difference(t([1.0 + 1j]), t([3.0 + 0j])), [5.0 + 0j]),
    (lambda: tf.math.count_nonzero(t([[1, 0], [2, 3]]), keepdims=True), [[3]]),
    (lambda: tf.cumsum(t([], tf.float32), exclusive=True), []),
    (lambda: tf.reduce_logsumexp(t([1.0, 2.0]), axis=[]), [1.0, 2.0]),
    (lambda: tf.sequence_mask(t([1.5])), [[True, True]]),
    (lambda: tf.sequence_mask(t([], tf.int32)), []),
    (lambda: tf.meshgrid(), []),
    (lambda: tf.clip_by_global_norm([None], 1.0)[1], 0.0),
    (lambda: tf.map_fn(lambda x: {"c": x["a"]}, {"a": t([1])})["c"], [1]),
    (lambda: tf.map_fn(lambda x: x, t([], tf.float32)), []),
    (lambda: tf.map_fn(lambda x: x, t([], tf.float32), fn_output_signature=tf.int32), []),
    (lambda: tf.nn.bias_add(t([[[1.0], [2.0]]]), t([1.0, 1.0]), data_format="NCW"), [[[2.0], [3.0]]]),
    (lambda: tf.constant_initializer([7])([2, 2]), [[7, 7], [7, 7]]),
    (lambda: tf.sort(t([2, 1]), direction="DESCENDING"), [2, 1]),
    (lambda: tf.argsort(t([3, 1, 2])), [1, 2, 0]),
    (lambda: tf.unique(t([3, 1, 3])), [[3, 1], [0, 1, 0]]),
    (lambda: tf.einsum("i,i->", t([1, 2]), t([3, 4])), 11),
    (lambda: tf.tensordot(t([[1, 2]]), t([[3], [4]]), 1), [[11]]),
    (lambda: tf.meshgrid(t([1, 2]), t([3])), [[[1, 2]], [[3, 3]]]),
    (lambda: tf.roll(t([1, 2, 3]), 1, 0), [3, 1, 2]),
    (lambda: tf.sequence_mask([1, 2], dtype=tf.int32), [[1, 0], [1, 1]]),
    (lambda: tf.searchsorted(t([1, 3]), t([2, 3])), [1, 1]),
    (lambda: tf.clip_by_norm(t([3.0, 4.0]), 1.0), [0.6, 0.8]),
    (lambda: tf.clip_by_global_norm([t([3.0]), t([4.0])], 1.0), [[[0.6], [0.8]], 5.0]),
    (lambda: tf.map_fn(lambda x: x * 2, t([1, 2])), [2, 4]),
    (lambda: tf.map_fn(lambda x: (x[0] + x[1], x[0]), (t([1]), t([2]))), [[3], [1]]),
    (lambda: tf.py_function(lambda x: x + 1, [t(1)], tf.int64), 2),
    (lambda: tf.numpy_function(lambda x: [x, x], [t(1)], [tf.int32, tf.float32]), [1, 1.0]),
    (lambda: tf.switch_case(t(1), [lambda: t(5), lambda: t(6)]), 6),
    (lambda: tf.case([(t(False), lambda: t(1))], default=lambda: t(2)), 2),
    (lambda: tf.while_loop(lambda i: i < 5, lambda i: [i + 1], [t(0)], maximum_iterations=3), [3]),
    (lambda: tf.identity_n([t(1), t(2)]), [1, 2]),
    (lambda: tf.tuple([t(1)]), [1]),
    (lambda: tf.nn.embedding_lookup(t([[1.0], [2.0]]), [1, 0]), [[2.0], [1.0]]),
    (lambda: tf.nn.embedding_lookup(t([[3.0, 4.0]]), [0], max_norm=1.0), [[0.6, 0.8]]),
    (lambda: tf.nn.leaky_relu(t([-1.0, 1.0])), [-0.2, 1.0]),
    (lambda: tf.nn.leaky_relu(t([-2, 3])), [-0.4, 3.0]),
    (lambda: tf.nn.silu(t([-1.0]), beta=2.0), [-0.1192029]),
    (lambda: tf.nn.embedding_lookup([t([[1.0], [3.0]]), t([[2.0]])], [0, 1, 2]), [[1.0], [3.0], [2.0]]),
    (lambda: tf.nn.relu6(t([7.0])), [6.0]),
    (lambda: tf.nn.gelu(t([0.0])), [0.0]),
    (lambda: tf.nn.l2_loss(t([3.0, 4.0])), 12.5),
    (lambda: tf.nn.bias_add(t([[1.0, 2.0]]), t([1.0, 1.0])), [[2.0, 3.0]]),
    (lambda: tf.nn.dropout(t([1.0, 2.0]), 0.0), [1.0, 2.0]),
    (lambda: tf.nn.sigmoid_cross_entropy_with_logits(labels=t([0.0]), logits=t([0.0])), [np.log(2)]),
    (lambda: tf.zeros_initializer()([2]), [0.0, 0.0]),
    (lambda: tf.ones_initializer()([1], tf.int32), [1]),
    (lambda: tf.constant_initializer([1, 2])([2, 1]), [[1], [2]]),
]


@pytest.mark.parametrize(("compute", "wanted"), CASES)
def test_results_are_tensorflows(compute: Any, wanted: Any) -> None:
    found = listed(compute())
    tf.nest.assert_same_structure(found, wanted)
    assert tf.nest.flatten(found) == pytest.approx(tf.nest.flatten(wanted), abs=1e-6)


def test_assertions_pass_or_tell_their_condition() -> None:
    check = tf.debugging
    check.assert_equal(t([1]), [1])
    check.assert_none_equal(t(1), 2)
    check.assert_less(1, t(2))
    check.assert_positive(t([1.0]))
    check.assert_near(t(1.0), t(1.0))
    check.assert_rank(t([1]), 1)
    check.assert_type(t(1.0), tf.float32)
    tf.Assert(t(True), [t(1)])
    check.assert_scalar(t(1.0))
    assert float(check.check_numerics(t(1.0), "all")) == 1.0
    for refused, kind, text in (
        (
            lambda: check.assert_equal(t(1), t(2), message="here"),
            tf.errors.InvalidArgumentError,
            "here\nCondition x ==",
        ),
        (lambda: check.assert_non_negative(t(-1)), tf.errors.InvalidArgumentError, "Condition x >= 0 did not hold"),
        (lambda: check.check_numerics(t(float("nan")), "sum"), tf.errors.InvalidArgumentError, "sum : Tensor had NaN"),
        (lambda: tf.Assert(t(False), ["why"]), tf.errors.InvalidArgumentError, "Summarized data: why"),
        (lambda: check.assert_rank(t(1), 1), ValueError, "must have rank 1"),
        (lambda: check.assert_scalar(t([1])), ValueError, "Expected scalar shape"),
        (lambda: check.assert_type(t(1), tf.float32), TypeError, "must be of type tf.float32"),
        (lambda: tf.ensure_shape(t([1]), [2]), tf.errors.InvalidArgumentError, "not compatible with expected shape"),
        (lambda: tf.cond(t(True), 1, 2), TypeError, "'true_fn' must be callable"),
    ):
        with pytest.raises(kind, match=text):
            refused()


REFUSED: list[tuple[Any, Any, str]] = [
    (lambda: tf.repeat(t([1, 2]), [1, 2, 3]), ValueError, "repeat: repeats must have the same size"),
    (lambda: tf.reverse(t([1, 2]), [1]), tf.errors.InvalidArgumentError, "reverse: Dimension out of range"),
    (lambda: tf.slice(t([1, 2]), [-1], [1]), tf.errors.InvalidArgumentError, r"Expected begin\[0\] in \[0, 2\]"),
    (lambda: tf.slice(t([[1, 2]]), [0], [1]), tf.errors.InvalidArgumentError, "1-D tensors of size 2"),
    (lambda: tf.slice(t([1, 2]), [1], [5]), tf.errors.InvalidArgumentError, "slice"),
    (lambda: tf.pad(t([1]), [[1, 0]], "X"), ValueError, "argument `mode` expected to be one of"),
    (lambda: tf.pad(t([1]), [[-1, 0]]), tf.errors.InvalidArgumentError, "must be non-negative"),
    (lambda: tf.pad(t([1]), [[1, 0], [1, 0]]), tf.errors.InvalidArgumentError, "must be the rank of inputs"),
    (lambda: tf.pad(t([1]), [[1, 0]], "REFLECT"), tf.errors.InvalidArgumentError, "no greater than 0"),
    (lambda: tf.meshgrid([1], indexing="x"), ValueError, "must be either 'xy' or 'ij'"),
    (lambda: tf.meshgrid([1], other=1), TypeError, "'other' is an invalid keyword"),
    (lambda: tf.sequence_mask([1], [3]), ValueError, "`maxlen` must be scalar"),
    (lambda: tf.unique(t([[1]])), tf.errors.InvalidArgumentError, "unique expects a 1D vector"),
    (lambda: tf.searchsorted(t([1]), t([1]), side="x"), ValueError, "either 'right' or 'left'"),
    (lambda: tf.math.top_k(t(1)), tf.errors.InvalidArgumentError, "must be >= 1-D"),
    (lambda: tf.einsum("i,i->", t([1]), t([1.0])), tf.errors.InvalidArgumentError, "cannot compute Einsum"),
    (lambda: tf.clip_by_global_norm(cast(Any, t([3.0])), 1.0), TypeError, "should be a sequence of tensors"),
    (lambda: tf.map_fn(lambda x: x, []), ValueError, "elems must be a Tensor"),
    (lambda: tf.map_fn(lambda x: x, t(1)), ValueError, r"must be 1\+ dimensional"),
    (lambda: tf.case([(t(False), lambda: t(1))]), tf.errors.InvalidArgumentError, "None of conditions"),
    (lambda: tf.while_loop(lambda: True, lambda: (), []), ValueError, "'loop_vars' must be provided"),
    (lambda: tf.cumsum(t([1]), 1), tf.errors.InvalidArgumentError, r"range \[-1, 1\), but got 1"),
    (lambda: tf.truediv(t(1.0), t(1)), TypeError, "must have the same dtype"),
    (lambda: tf.truediv(t(True), t(True)), TypeError, "Invalid dtype tf.bool"),
    (lambda: tf.math.scalar_mul(t([2.0]), t([1.0])), ValueError, "must be a 0-D value"),
    (lambda: tf.math.accumulate_n([t(1), t(1.0)]), ValueError, "same dtype and shape"),
    (lambda: tf.math.accumulate_n([t(1)], tensor_dtype=tf.float32), TypeError, "must be equal"),
    (lambda: tf.add_n([t([1]), t([1, 2])]), tf.errors.InvalidArgumentError, "must have the same size"),
    (lambda: tf.math.segment_sum(t([1]), t([-1])), tf.errors.InvalidArgumentError, "not increasing"),
    (lambda: tf.math.segment_sum(t([[1]]), t([[0]])), tf.errors.InvalidArgumentError, "should be a vector"),
    (lambda: tf.math.segment_sum(t([1, 2]), t([0])), tf.errors.InvalidArgumentError, "does not start with"),
    (lambda: tf.nn.bias_add(t([[1.0, 2.0]]), t([1.0])), tf.errors.InvalidArgumentError, "does not fit axis 1"),
    (lambda: tf.nn.bias_add(t([[1.0]]), t([1.0]), "XX"), ValueError, "`data_format` must be"),
    (lambda: tf.nn.dropout(t([1]), 0.5), ValueError, "must be a floating point tensor"),
    (lambda: tf.debugging.assert_equal(t(1), t(1.0)), tf.errors.InvalidArgumentError, "cannot compute Equal"),
    (lambda: tf.debugging.assert_equal(t([1, 2]), t([1, 2, 3])), tf.errors.InvalidArgumentError, "must match"),
    (lambda: tf.debugging.assert_near(t(1), t(1)), ValueError, "not inexact"),
    (lambda: tf.debugging.assert_rank(t(1), [0]), ValueError, "Rank must be a scalar"),
]


@pytest.mark.parametrize(("compute", "kind", "text"), REFUSED)
def test_wrong_arguments_are_refused_as_by_tensorflow(compute: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        compute()


def test_initializers_describe_themselves_and_refuse_other_dtypes() -> None:
    for made, config in (
        (tf.constant_initializer(3), {"value": 3}),
        (tf.ones_initializer(), {}),
        (tf.random_uniform_initializer(0, 1), {"minval": 0, "maxval": 1, "seed": None}),
        (tf.random_normal_initializer(), {"mean": 0.0, "stddev": 0.05, "seed": None}),
    ):
        assert made.get_config() == config
        assert type(made).from_config(config)([2]).shape == (2,)
    with pytest.raises(TypeError, match="dtype int32"):
        tf.random_uniform_initializer()([2], tf.int32)
    with pytest.raises(ValueError, match="expected to be numeric"):
        tf.random_uniform_initializer(0, 5)([2], tf.bool)
    with pytest.raises(ValueError, match="expected to be floating point"):
        tf.random_normal_initializer()([2], tf.int32)


def test_older_variables_need_a_shape_or_a_value() -> None:
    with pytest.raises(ValueError, match="do not specify shape"):
        tf.compat.v1.get_variable("w", shape=[2], initializer=t([3.0, 1.0]))
    with pytest.raises(ValueError, match="Variable w did not get an initializer"):
        tf.compat.v1.get_variable("w")


def test_a_custom_gradient_replaces_the_functions_own() -> None:
    @tf.custom_gradient
    def double(x: Any) -> Any:
        return x * 2, lambda upstream: upstream * 10

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = double(x) * 2
    assert (float(y), float(tape.gradient(y, x))) == (12.0, 20.0)


def test_a_tensor_array_is_written_by_place() -> None:
    array = tf.TensorArray(tf.float32, size=1, dynamic_size=True).write(0, 1.0).write(2, 3.0)
    array = array.write(1, 0.0)
    assert (listed(array.stack()), int(array.size()), float(array.read(2))) == ([1.0, 0.0, 3.0], 3, 3.0)
    assert listed(tf.TensorArray(tf.int32, size=0, dynamic_size=True).unstack(t([[1], [2]])).concat()) == [1, 2]
    with pytest.raises(tf.errors.OutOfRangeError, match="not resizeable"):
        tf.TensorArray(tf.float32, size=1).write(1, 1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="TensorArray dtype is float32"):
        tf.TensorArray(tf.float32, size=1).write(0, t(1))


def test_reading_empties_the_places_of_a_tensor_array() -> None:
    array = tf.TensorArray(tf.float32, size=2).scatter([1, 0], t([1.0, 2.0]))
    assert (listed(array.gather([1, 0])), listed(array.gather([])), array.element_shape) == ([1.0, 2.0], [], ())
    assert (float(array.read(0)), listed(array.stack())) == (2.0, [0.0, 1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="cleared after a previous read"):
        array.read(0)
    kept = tf.TensorArray(tf.float32, size=2, clear_after_read=False).split(t([1.0, 2.0, 3.0]), [1, 2])
    assert (listed(kept.read(1)), listed(kept.read(1)), listed(kept.concat())) == ([2.0, 3.0], [2.0, 3.0], [1, 2, 3])
    kept.close()
    assert int(kept.size()) == 0
    assert listed(tf.TensorArray(tf.float32, size=1, element_shape=[2]).stack()) == [[0.0, 0.0]]
    for refused, text in (
        (lambda: tf.TensorArray(tf.float32), "Size must be declared"),
        (lambda: tf.TensorArray(tf.float32, size=1).stack(), "nothing was written to index 0"),
        (lambda: tf.TensorArray(tf.float32, size=1, element_shape=[2]).write(0, [1.0]), "Incompatible shape"),
        (lambda: tf.TensorArray(tf.float32, size=1).unstack(t([1.0, 2.0])), "Cannot unstack 2 tensors"),
    ):
        with pytest.raises(ValueError, match=text):
            refused()


def test_signatures_of_functions_bind_and_refuse() -> None:
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def more(x: Any) -> Any:
        return x + 1.0

    assert listed(more([1, 2])) == [2.0, 3.0]
    for given in ((t([[1.0]]),), (t([1]),), ()):
        with pytest.raises(TypeError, match=r"Binding inputs to tf\.function failed"):
            more(*given)
    product: Any = tf.function(lambda x, y: x * y)
    assert float(product.get_concrete_function(tf.TensorSpec([]), 3)(t(2.0))) == 6.0
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2, drop_remainder=True))
    doubled: Any = tf.function(lambda x: strategy.run(lambda y: y * 2, (x,)), input_signature=[dataset.element_spec])
    assert [listed(list(doubled(x).values)) for x in dataset] == [[[0], [2]], [[4], [6]]]
    with pytest.raises(TypeError, match="Can not cast"):
        doubled(t([1]))
    iterator, described = iter(dataset), dataset._type_spec
    first: Any = tf.function(lambda it: strategy.run(lambda y: y, (next(it),)), input_signature=[iterator._type_spec])
    assert listed(list(first(iterator).values)) == [[0], [1]]
    assert (described, hash(described)) == (tf.data.DatasetSpec(dataset.element_spec), hash(dataset._type_spec))
    assert tf.data.Dataset.range(1)._type_spec == tf.data.DatasetSpec(tf.TensorSpec([], tf.int64))
    assert iterator._type_spec != described


def test_functions_give_tensors_and_tell_the_end_of_iterators() -> None:
    variable, iterator = tf.Variable(1.0), iter(tf.data.Dataset.range(1))
    assigned: Any = tf.function(lambda: variable.assign(2.0))
    assert type(assigned()).__name__ == "Tensor"
    step: Any = tf.function(lambda: next(iterator))
    step()
    with pytest.raises(tf.errors.OutOfRangeError):
        step()


def test_windows_pads_and_the_first_elements() -> None:
    numbers = tf.data.Dataset.range(5)
    assert [[int(x) for x in part] for part in numbers.window(2, shift=1, drop_remainder=True)][-1] == [3, 4]
    assert [int(numbers.window(2, 1, drop_remainder=drop).cardinality()) for drop in (True, False)] == [4, 5]
    assert numbers.window(2).element_spec == tf.data.DatasetSpec(tf.TensorSpec([], tf.int64))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be greater than zero"):
        numbers.window(0)
    assert [int(x) for x in numbers.take_while(lambda x: x < 2)] == [0, 1]
    padded = tf.data.Dataset.range(1, 3).map(lambda x: tf.fill([x], x)).padded_batch(2, padding_values=-1)
    assert [listed(batch) for batch in padded] == [[[1, -1], [2, 2]]]
    rows = tf.data.Dataset.range(1, 3).map(lambda x: tf.fill([x], x))
    with pytest.raises(tf.errors.DataLossError, match="smaller size than the input element"):
        list(rows.padded_batch(2, padded_shapes=[1]))
    with pytest.raises(TypeError, match="dtype int64"):
        list(rows.padded_batch(2, padding_values=1.5))
    assert not bool(tf.data.experimental.get_next_as_optional(iter(tf.data.Dataset.range(0))).has_value())


def test_a_reader_tells_a_checkpoints_values(tmp_path: Any) -> None:
    path = tf.train.Checkpoint(v=tf.Variable([3.0, 4.0])).write(str(tmp_path / "c"))
    reader, key = tf.train.load_checkpoint(path), "v/.ATTRIBUTES/VARIABLE_VALUE"
    assert (reader.get_variable_to_shape_map(), reader.has_tensor("w")) == ({key: [2]}, False)
    assert reader.get_tensor(key).tolist() == [3.0, 4.0]
    assert reader.get_variable_to_dtype_map()[key] == tf.float32


def test_scopes_of_names_are_told() -> None:
    with tf.name_scope("a"), tf.name_scope("b"):
        assert tf.get_current_name_scope() == "a/b"
    assert repr(tf.type_spec_from_value(t([1.0]))) == "TensorSpec(shape=(1,), dtype=tf.float32, name=None)"


def test_memory_that_is_not_there_is_told_as_such() -> None:
    with pytest.raises(tf.errors.ResourceExhaustedError, match=r"^repeat: .*allocate"):
        tf.repeat(tf.ones([1]), 10**14)
