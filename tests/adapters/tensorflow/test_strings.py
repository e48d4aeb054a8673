"""Tensors of strings, in functions, tables, files, datasets and replicas; expected results are from TensorFlow 2.21."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored

WORDS: Any = tf.constant(["a", "b", "c", "d"])
Table = tf.lookup.StaticHashTable
Pairs = tf.lookup.KeyValueTensorInitializer


def values(tensor: Any) -> Any:
    return tensor.numpy().tolist()


def test_text_becomes_a_tensor() -> None:
    word: Any = tf.constant("é")
    assert (word.numpy(), word.dtype, word.shape, tf.is_tensor(word)) == ("é".encode(), tf.string, (), True)
    assert repr(tf.constant(["a"])) == "<tf.Tensor: shape=(1,), dtype=string, numpy=array([b'a'], dtype=object)>"
    assert values(tf.convert_to_tensor(np.array(["a", "b"]))) == [b"a", b"b"]
    assert values(tf.constant("a", shape=[2])) == [b"a", b"a"]
    assert values(tf.zeros([2], tf.string)) == [b"", b""]
    assert (tf.as_dtype("string"), tf.string.name, tf.string == tf.int32) == (tf.string, "string", False)
    with pytest.raises(TypeError, match="Cannot convert 1 to EagerTensor of dtype string"):
        tf.constant(1, tf.string)


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda: tf.reshape(WORDS, [2, 2]), [[b"a", b"b"], [b"c", b"d"]]),
        (lambda: tf.concat([WORDS[:1], WORDS[3:]], 0), [b"a", b"d"]),
        (lambda: tf.stack(["a", WORDS[1]]), [b"a", b"b"]),
        (lambda: tf.gather(WORDS, [2, 0]), [b"c", b"a"]),
        (lambda: tf.boolean_mask(WORDS, [True, False, True, False]), [b"a", b"c"]),
        (lambda: tf.where([True, False], WORDS[:2], tf.constant("z")), [b"a", b"z"]),
        (lambda: tf.unique(["b", "a", "b"]).y, [b"b", b"a"]),
        (lambda: tf.unique_with_counts(["b", "a", "b"]).count, [2, 1]),
        (lambda: tf.equal(WORDS, "c"), [False, False, True, False]),
        (lambda: WORDS + "!", [b"a!", b"b!", b"c!", b"d!"]),
        (lambda: tf.expand_dims(WORDS, 0)[0, 1], b"b"),
        (lambda: tf.size(WORDS), 4),
        (lambda: tf.slice(WORDS, [1], [2]), [b"b", b"c"]),
    ],
)
def test_functions_move_and_compare_text(compute: Callable[[], Any], expected: Any) -> None:
    found = compute().numpy()
    assert (found.tolist() if hasattr(found, "tolist") else found) == expected


def test_names_of_dtypes_are_no_text() -> None:
    assert values(tf.cast(x=tf.constant([1.5]), dtype="int32")) == [1]
    assert tf.size(input=WORDS, out_type=tf.int64).dtype == tf.int64


@pytest.mark.parametrize("function", [tf.reduce_sum, tf.argsort, tf.abs, lambda x: tf.cast(x, tf.int32)])
def test_functions_of_numbers_refuse_text(function: Callable[[Any], Any]) -> None:
    with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.UnimplementedError), match="string"):
        function(WORDS)


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda s: s.length(["ab", "é"], unit="UTF8_CHAR"), [2, 1]),
        (lambda s: s.lower(["Ab"]), [b"ab"]),
        (lambda s: s.join(["x", ["a", "b"]], separator="-"), [b"x-a", b"x-b"]),
        (lambda s: s.split("a b  c"), [b"a", b"b", b"c"]),
        (lambda s: s.split(["a b", "c"]).to_tensor(), [[b"a", b"b"], [b"c", b""]]),
        (lambda s: s.regex_replace(["a1b2"], "[0-9]", "#"), [b"a#b#"]),
        (lambda s: s.regex_full_match(["ab", "abc"], "a.*b"), [True, False]),
        (lambda s: s.substr(["hello"], 1, 3), [b"ell"]),
        (lambda s: s.to_number(["1", "2"], tf.int32), [1, 2]),
        (lambda s: s.as_string([1.5, 2.0]), [b"1.500000", b"2.000000"]),
        (lambda s: s.as_string([True]), [b"true"]),
        (lambda s: s.reduce_join([["a", "b"], ["c", "d"]], axis=1, separator="-"), [b"a-b", b"c-d"]),
        (lambda s: [s.format("x {}", tf.constant([1, 2]))], [b"x [1 2]"]),
    ],
)
def test_functions_of_text(compute: Callable[[Any], Any], expected: Any) -> None:
    found = compute(tf.strings)
    assert ([one.numpy() for one in found] if isinstance(found, list) else values(found)) == expected


def test_tables_translate_keys() -> None:
    table = Table(Pairs(["a", "b"], [1, 2]), default_value=-1)
    assert values(table.lookup(tf.constant([["a"], ["q"]]))) == [[1], [-1]]
    assert values(Table(Pairs([1, 2], ["x", "y"]), "?")[tf.constant([2, 5])]) == [b"y", b"?"]
    with pytest.raises(TypeError, match="Dtype of argument `keys` must be"):
        table.lookup(tf.constant([1]))
    with pytest.raises(tf.errors.FailedPreconditionError, match="different value for same key"):
        Table(Pairs(["a", "a"], [1, 2]), 0)
    ids = tf.lookup.StaticVocabularyTable(Pairs(["a"], tf.constant([0], tf.int64)), 1)
    assert (values(ids.lookup(tf.constant(["a", "z"]))), int(ids.size())) == ([0, 1], 2)
    changing = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    changing.insert(tf.constant(["a", "b"]), tf.constant([5, 6], tf.int64))
    changing.remove(tf.constant(["a"]))
    assert values(changing.lookup(tf.constant(["a", "b"]))) == [-1, 6]


def test_files_are_read_and_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.txt"
    tf.io.write_file(str(path), "one\ntwo\n")
    assert tf.io.read_file(tf.constant(str(path))).numpy() == b"one\ntwo\n"
    assert [line.numpy() for line in tf.data.TextLineDataset([str(path)])] == [b"one", b"two"]
    assert [name.numpy() for name in tf.data.Dataset.list_files(f"{path.parent}/*.txt")] == [str(path).encode()]
    with pytest.raises(tf.errors.InvalidArgumentError, match="No files matched"):
        tf.data.Dataset.list_files(f"{path.parent}/*.csv")
    index = tf.lookup.TextFileIndex
    lines = tf.lookup.TextFileInitializer(str(path), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER)
    assert values(Table(lines, -1).lookup(tf.constant(["two"]))) == [1]


def test_datasets_hold_text() -> None:
    words = tf.data.Dataset.from_tensor_slices(["a", "bb", "a"])
    assert words.element_spec == tf.TensorSpec((), tf.string)
    assert [values(batch) for batch in words.batch(2)] == [[b"a", b"bb"], [b"a"]]
    assert [int(length) for length in words.map(tf.strings.length)] == [1, 2, 1]
    assert [word.numpy() for word in words.filter(lambda word: word == "bb")] == [b"bb"]
    assert [word.numpy() for word in words.unique()] == [b"a", b"bb"]
    made = tf.data.Dataset.from_generator(lambda: iter(["a"]), output_signature=tf.TensorSpec([], tf.string))
    assert [word.numpy() for word in made] == [b"a"]


def test_replicas_receive_text_but_do_not_exchange_it() -> None:
    strategy = mirrored(2)
    words = tf.data.Dataset.from_tensor_slices(["a", "bb", "c"]).batch(2)
    found = [
        [values(part) for part in strategy.run(tf.strings.length, args=(batch,)).values]
        for batch in strategy.experimental_distribute_dataset(words)
    ]
    assert found == [[[1], [2]], [[1], []]]

    def gather() -> Any:
        context: Any = tf.distribute.get_replica_context()
        return context.all_gather(tf.constant(["a"]), axis=0)

    with pytest.raises(TypeError, match=r"tensors of tf\.string stay in their replica"):
        strategy.run(gather)
    with pytest.raises(TypeError, match=r"variables of tf\.string do not exist"):
        tf.Variable("a")


@pytest.mark.skipif(find_spec("keras") is None, reason="Keras is not installed: pip install collshim[keras]")
def test_keras_looks_up_text_and_integers() -> None:
    layers = tf.keras.layers
    layer = layers.StringLookup(vocabulary=["a", "b"])
    words = tf.data.Dataset.from_tensor_slices(["a", "q"]).batch(2).map(layer)
    assert [values(batch) for batch in words] == [[1, 0]]
    assert values(layers.StringLookup(vocabulary=["a", "b"], invert=True)(tf.constant([2, 0]))) == [b"b", b"[UNK]"]
    rows = layers.StringLookup(output_mode="multi_hot")
    rows.adapt(["b", "a", "b"])
    assert (rows.get_vocabulary(), values(rows(["a", "z"]))) == (["[UNK]", "b", "a"], [1, 0, 1])
    assert values(layers.IntegerLookup(vocabulary=[10, 20])(tf.constant([20, 5]))) == [2, 0]
