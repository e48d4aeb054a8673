"""``tf.nest`` matches TensorFlow 2.21 and dm-tree 0.1.10."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

import collshim.tensorflow as tf
from tests.adapters.tensorflow import nests


class Pair(NamedTuple):
    x: Any
    y: Any


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (lambda: tf.nest.flatten({"b": 1, "a": [2, (3,)]}), [2, 3, 1]),
        (lambda: tf.nest.flatten(None), [None]),
        (lambda: tf.nest.map_structure(lambda a, b: a + b, {"b": 1}, {"b": 2}), {"b": 3}),
        (lambda: tf.nest.map_structure(lambda a: -a, Pair(1, [2])), Pair(-1, [-2])),
        (lambda: tf.nest.map_structure(lambda a, b: a + b, [1], (2,), check_types=False), [3]),
        (lambda: tf.nest.pack_sequence_as({"b": 0, "a": (0, 0)}, [1, 2, 3]), {"b": 3, "a": (1, 2)}),
        (lambda: tf.nest.pack_sequence_as(0, [1]), 1),
        (lambda: tf.nest.map_structure(abs, defaultdict(list, x=-1)).default_factory, list),
        (lambda: tf.nest.is_nested("a"), False),
        (lambda: tf.nest.is_nested({}), True),
        (lambda: tf.nest.assert_same_structure([1, (2,)], [3, (4,)]), None),
        (lambda: tf.nest.flatten(tf.IndexedSlices([1.0], [0]), expand_composites=True), [[1.0], [0]]),
    ],
)
def test_structures(found: Callable[[], Any], wanted: Any) -> None:
    assert found() == wanted


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: tf.nest.assert_same_structure([1], [1, 2]), ValueError, "don't have the same number of elements"),
        (lambda: tf.nest.map_structure(lambda a, b: a, [1], (1,)), TypeError, "don't have the same sequence type"),
        (lambda: tf.nest.pack_sequence_as([1], [1, 2]), ValueError, "had 1 atoms, but flat_sequence had 2 items"),
        (lambda: tf.nest.assert_same_structure({"a": 1}, {"b": 1}), ValueError, "don't have the same set of keys"),
        (lambda: tf.nest.assert_same_structure(1, [1]), ValueError, 'substructure "type=int str=1" is not'),
        (lambda: tf.nest.flatten({"a": 1, 2: 3}), TypeError, "sortable keys"),
        (lambda: tf.nest.map_structure(cast(Any, 3), [1]), TypeError, "func must be callable, got: 3"),
        (lambda: tf.nest.map_structure(lambda x: x), ValueError, "Must provide at least one structure"),
        (lambda: tf.nest.pack_sequence_as(1, [1, 2]), ValueError, "nest cannot guarantee"),
        (lambda: tf.nest.pack_sequence_as([1], 3), TypeError, "incompatible type `<class 'int'>`"),
    ],
)
def test_different_structures_are_refused(call: Callable[[], Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        call()


def test_nest_kinds_are_treated_as_tensorflow_does() -> None:
    lines = Path(nests.__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    said = dict(line.split(" -> ") for line in lines)
    found = nests.outcomes(tf.nest)
    differing = [call for call, outcome in found.items() if outcome != said[call]]
    assert len(found) > 300
    # A read-only view of a mapping is rebuilt as in dm-tree.
    assert differing == ["map_structure: proxy", "pack 2 of 2: proxy"]
    assert all(found[call] == said[f"dm-tree, {call}"] for call in differing)


def test_tensors_of_parts_are_taken_apart_and_put_together() -> None:
    structure = {
        "ragged": tf.ragged.constant([[1.0, 2.0], [3.0]]),
        "plain": tf.constant([5.0]),
        "sparse": tf.sparse.from_dense([[0, 2], [3, 0]]),
        "slices": tf.IndexedSlices(tf.constant([1.0]), tf.constant([0])),
    }
    parts = tf.nest.flatten(structure, expand_composites=True)
    assert len(parts) == 1 + 2 + 2 + 3
    made = tf.nest.pack_sequence_as(structure, parts, expand_composites=True)
    assert made["ragged"].to_list() == [[1.0, 2.0], [3.0]]
    assert tf.sparse.to_dense(made["sparse"]).numpy().tolist() == [[0, 2], [3, 0]]
    assert made["slices"].values.numpy().tolist() == [1.0]
    with pytest.raises(ValueError, match="4 atoms, but flat_sequence had 3 items"):
        tf.nest.pack_sequence_as(structure, parts[:3], expand_composites=True)
