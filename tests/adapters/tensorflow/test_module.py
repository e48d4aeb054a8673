"""``tf.Module``, name scopes, variable creators, functions and dtypes match TensorFlow 2.21."""

from __future__ import annotations

import contextvars
from typing import Any

import pytest

import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored


class Inner(tf.Module):
    def __init__(self, name: str | None = None) -> None:
        super().__init__(name=name)
        self.z = tf.Variable(1.0, name="z")
        self.a = tf.Variable(2.0, trainable=False)


class MyDense2D(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        with self.name_scope:
            self.w = tf.Variable([1.0], name="w")
            self.inner = Inner()
        self.more: Any = [Inner("x"), {"k": tf.Variable(3.0, name="k")}]
        self.again = self.w
        self.b = tf.Variable(0.0, name="b")

    @tf.Module.with_name_scope
    def made(self) -> Any:
        return tf.Variable(1.0, name="c")


def names(found: Any) -> list[str]:
    return [one.name for one in found]


def test_module_finds_variables_in_its_attributes() -> None:
    module = MyDense2D()
    own = ["my_dense2_d/w:0", "b:0", "k:0"]
    assert names(module.variables) == [*own, "my_dense2_d/Variable:0", "my_dense2_d/z:0", "Variable:0", "z:0"]
    assert names(module.trainable_variables) == [*own, "my_dense2_d/z:0", "z:0"]
    assert names(module.non_trainable_variables) == ["my_dense2_d/Variable:0", "Variable:0"]
    assert names(module.submodules) == ["inner", "x"]
    assert (module.name, module.name_scope.name, module.made().name) == (
        "my_dense2_d",
        "my_dense2_d/",
        "my_dense2_d/c:0",
    )


@pytest.mark.parametrize("name", ["1a", "a/b", ""])
def test_module_name_must_be_an_identifier(name: str) -> None:
    with pytest.raises(ValueError, match=f"^'{name}' is not a valid module name"):
        tf.Module(name)


def test_name_scopes_nest_and_restart() -> None:
    scope = tf.name_scope("a")
    with scope as outer, tf.name_scope("b") as inner:
        assert (outer, inner, tf.Variable(1.0, name="v").name) == ("a/", "a/b/", "a/b/v:0")
        with tf.name_scope("c/") as absolute:
            assert (absolute, tf.Variable(1.0).name) == ("c/", "c/Variable:0")
        with tf.name_scope(""):
            assert tf.Variable(1.0, name="v").name == "v:0"
        with scope as again:
            assert (again, scope.name) == ("a/b/a/", "a")
    wrong: Any = None
    with pytest.raises(ValueError, match=r"^name for name_scope must be a string\.$"):
        tf.name_scope(wrong).__enter__()


def test_shared_scope_applies_to_each_replica() -> None:
    module = MyDense2D()
    found: Any = mirrored(2).run(lambda: module.made().name)
    assert found.values == ("my_dense2_d/c:0", "my_dense2_d/c:0")


def test_variable_creators_run_from_the_inside_out() -> None:
    asked: list[Any] = []

    def outer(next_creator: Any, **kwargs: Any) -> Any:
        asked.append(("outer", kwargs["trainable"]))
        return next_creator(**kwargs)

    def inner(next_creator: Any, **kwargs: Any) -> Any:
        asked.append(("inner", kwargs["trainable"], kwargs["synchronization"], kwargs["aggregation"]))
        return next_creator(**{**kwargs, "trainable": False})

    with tf.variable_creator_scope(outer), tf.variable_creator_scope(inner):
        assert not tf.Variable(1.0).trainable
    auto, none = tf.VariableSynchronization.AUTO, tf.VariableAggregation.NONE
    assert asked == [("inner", None, auto, none), ("outer", False)]
    with tf.variable_creator_scope(lambda next_creator, **kwargs: 5):
        assert tf.Variable(1.0) == 5


def test_creators_around_a_scope_make_each_copy() -> None:
    asked: list[Any] = []

    def asking(place: str) -> Any:
        def creator(next_creator: Any, **kwargs: Any) -> Any:
            asked.append((place, kwargs["name"]))
            return next_creator(**kwargs)

        return tf.variable_creator_scope(creator)

    with asking("outer"), mirrored(2).scope(), asking("inner"), tf.name_scope("n"):
        made: Any = tf.Variable(1.0, name="x")
    assert asked == [("inner", "x"), ("outer", "x"), ("outer", "n/x/replica_1/")]
    assert [copy.name for copy in made.values] == ["n/x:0", "n/x/replica_1:0"]


def test_a_scope_makes_variables_in_contexts_that_it_was_not_entered_in() -> None:
    with mirrored(2).scope():
        assert type(contextvars.Context().run(lambda: tf.Variable(1.0))).__name__ == "MirroredVariable"


def test_custom_strategy_can_extend_its_scope() -> None:
    entered: list[str] = []

    class Counting(tf.distribute.MirroredStrategy):
        def scope(self) -> Any:
            entered.append("scope")
            return super().scope()

    assert Counting(["CPU:0", "CPU:1"]).run(lambda: 3) == 3
    assert entered == ["scope"]


def test_functions_have_a_class_and_bind_as_methods() -> None:
    class Holder:
        @tf.function
        def method(self, x: int) -> Any:
            """Text."""
            return self, x

    holder = Holder()
    assert holder.method(3) == (holder, 3)
    found: Any = Holder.method
    assert (found.__name__, found.__doc__, type(found).__name__) == ("method", "Text.", "Function")
    assert found.python_function(holder, 4) == (holder, 4)


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("float16", (True, False, False, 2, -65504.0, 65504.0)),
        ("float64", (True, False, False, 8, -1.7976931348623157e308, 1.7976931348623157e308)),
        ("int8", (False, True, False, 1, -128, 127)),
        ("uint16", (False, True, True, 2, 0, 65535)),
    ],
)
def test_dtype_attributes(name: str, facts: tuple[Any, ...]) -> None:
    dtype = tf.as_dtype(name)
    found = (dtype.is_floating, dtype.is_integer, dtype.is_unsigned, dtype.size, dtype.min, dtype.max)
    assert found == facts
    assert (str(dtype), repr(dtype), dtype.as_numpy_dtype.__name__) == (f"<dtype: '{name}'>", f"tf.{name}", name)
    assert dtype == getattr(tf, name) == dtype.base_dtype
    assert hash(dtype) == hash(getattr(tf, name))
    assert isinstance(dtype, tf.DType)
    assert isinstance(getattr(tf, name), tf.DType)
    assert tf.zeros([1], dtype).dtype is getattr(tf, name)


def test_bool_and_complex_dtypes_have_no_range() -> None:
    for name in ("bool", "complex64"):
        with pytest.raises(TypeError, match="minimum or maximum"):
            _ = tf.as_dtype(name).max
    assert tf.as_dtype("complex64").real_dtype == tf.float32


def test_moments_and_batch_normalization() -> None:
    x = tf.constant([[1.0, 2.0], [3.0, 5.0]])
    mean, variance = tf.nn.moments(x, [0])
    assert (mean.tolist(), variance.tolist()) == ([2.0, 3.5], [1.0, 2.25])
    assert tf.nn.moments(x, (0,), keepdims=True)[1].shape == [1, 2]
    assert tf.nn.batch_normalization(x, 1.0, 4.0, None, 2.0, 0.0).tolist() == [[0.0, 1.0], [2.0, 4.0]]
    assert tf.nn.batch_normalization(x, 1.0, 4.0, 3.0, None, 0.0).tolist() == [[3.0, 3.5], [4.0, 5.0]]
