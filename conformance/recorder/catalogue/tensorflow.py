"""What tf.distribute is asked: replica contexts, strategies, in every kind of world.

``run(f)`` calls ``f(context, number)`` on every replica; each replica finds its array in ``xs`` by its number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from collshim.conformance.recorder.asked import Asked, Inputs, part
from collshim.conformance.recorder.trees import given

T = "tensorflow.distribute."
R = T + "ReplicaContext."
ALL = (
    *(("mirrored", size) for size in range(1, 5)),
    *(("multiworker", size) for size in range(1, 4)),
    ("one device", 1),
    ("default", 1),
)
TWO = (("mirrored", 2), ("multiworker", 2))
FEW = (*TWO, ("mirrored", 3), ("mirrored", 1))
Worlds = Sequence[tuple[str, int]]
Make = Callable[[int], Inputs]


def ask(
    id: str, api: str | Sequence[str], call: str, inputs: Make, worlds: Worlds = FEW, match: str = ""
) -> list[Asked]:
    """The same call in several worlds; ``inputs(size)`` is what every process has."""
    paths = (api,) if isinstance(api, str) else tuple(api)
    return [Asked(id, call, paths, size, (inputs(size),), match, world=world) for world, size in worlds]


def xs(shape: Sequence[int] = (2, 3), dtype: str = "float32") -> Make:
    """One array per replica."""
    return lambda size: {"xs": [part(rank, shape, dtype) for rank in range(size)]}


def ragged(axis: int = 0) -> Make:
    """One array per replica, each a row, or a column, longer than the one before."""
    return lambda size: {"xs": [part(rank, (rank + 1, 2) if axis == 0 else (2, rank + 1)) for rank in range(size)]}


def graded(size: int) -> Inputs:
    """One array per replica, and the gradient of what is made of it."""
    return {
        "xs": [part(rank, (2,)) for rank in range(size)],
        "dys": [given([1.0 + rank, 3.0], "float32") for rank in range(size)],
    }


NEST = "{'a': xs[r], 'b': [xs[r], (xs[r],)]}"
SLICES = "tf.IndexedSlices(xs[r], tf.constant([r, 0]), tf.constant([8, 3]))"
AXIS = "Requires start <= limit"


def _all_gather() -> Iterator[list[Asked]]:
    def gather(value: str, axis: object = 0, more: str = "") -> str:
        return f"run(lambda c, r: c.all_gather({value}, axis={axis}{more}))"

    def case(what: str, call: str, inputs: Make, worlds: Worlds = FEW, match: str = "") -> list[Asked]:
        return ask(f"ReplicaContext.all_gather/{what}", R + "all_gather", call, inputs, worlds, match)

    for name, shape in {"1d": (3,), "2d": (2, 3), "3d": (2, 1, 3), "empty": (0, 3)}.items():
        yield case(name, gather("xs[r]"), xs(shape), ALL)
    for axis in (1, 2):
        yield case(f"axis {axis}", gather("xs[r]", axis), xs((2, 3, 1)), ALL if axis == 1 else FEW)
    yield case("ragged", gather("xs[r]"), ragged(), ALL)
    yield case("ragged axis 1", gather("xs[r]", 1), ragged(1), ALL)
    yield case("some empty", gather("xs[r]"), lambda size: {"xs": [part(rank, (rank, 2)) for rank in range(size)]}, FEW)
    for dtype in ("float16", "float64", "int32", "int64"):
        yield case(dtype, gather("xs[r]"), xs((2,), dtype), FEW)
    for dtype in ("int8", "uint8", "bool", "complex64", "bfloat16"):
        yield case(dtype, gather("xs[r]"), xs((2,), dtype), FEW, "not in list of allowed values")
    yield case("nest", gather(NEST), xs(), ALL)
    yield case("mixed dtypes", gather("[xs[r], tf.constant([r])]"), xs((2,)), FEW)
    yield case("empty list", gather("[]"), xs(), FEW)
    yield case("list of two numbers", gather("[1.0, 2.0]"), xs(), FEW)
    yield case("numpy", gather("np.array([r, 5.0], 'float32')"), xs(), FEW)
    yield case("None", gather("None"), xs(), FEW)
    yield case("0d", gather("xs[r]"), xs(()), ALL, AXIS)
    yield case("0d int32", gather("xs[r]"), xs((), "int32"), FEW)
    for axis in (-1, -2, 5):
        yield case(f"axis {axis}", gather("xs[r]", axis), xs(), FEW, AXIS)
    yield case("axis is text", gather("xs[r]", "'x'"), xs(), TWO)
    yield case("axis is None", gather("xs[r]", None), xs(), TWO)
    yield case("no axis", "run(lambda c, r: c.all_gather(xs[r]))", xs(), TWO, "missing 1 required positional")
    yield case("shapes differ off axis", gather("xs[r]"), ragged(1), TWO, "Shape mismatch in the collective")
    yield case(
        "ndims differ",
        gather("xs[r]"),
        lambda size: {"xs": [part(rank, (1,) * (rank + 1)) for rank in range(size)]},
        TWO,
    )
    yield case("indexed slices", gather(SLICES), xs(), FEW, "all_gather does not support IndexedSlices")
    yield case(
        "options",
        gather("xs[r]", 0, ", options=tf.distribute.experimental.CommunicationOptions(bytes_per_pack=1)"),
        xs(),
        FEW,
    )
    text = (
        "run(lambda c, r: gradient(lambda x: c.all_gather(x, axis=0), "
        "xs[r], tf.constant([1.0 + r + i for i in range({n} * size)])))"
    )
    yield case("gradient", text.replace("{n}", "2"), graded, ALL)
    outside = "_c = tf.distribute.get_replica_context(); [_c.num_replicas_in_sync, _c.strategy is strategy]"
    yield case("outside run", outside, xs(), FEW)


def _all_reduce() -> Iterator[list[Asked]]:
    def reduce(op: str, value: str = "xs[r]") -> str:
        return f"run(lambda c, r: c.all_reduce({op}, {value}))"

    def case(what: str, call: str, inputs: Make, worlds: Worlds = FEW, match: str = "") -> list[Asked]:
        return ask(f"ReplicaContext.all_reduce/{what}", R + "all_reduce", call, inputs, worlds, match)

    for op in ("SUM", "MEAN"):
        full = f"tf.distribute.ReduceOp.{op}"
        for name, shape in {"0d": (), "1d": (3,), "2d": (2, 3), "empty": (0, 3)}.items():
            yield case(f"{op} {name}", reduce(full), xs(shape), ALL)
        for dtype in ("float16", "bfloat16", "float64", "int32", "int64"):
            yield case(f"{op} {dtype}", reduce(full), xs((2,), dtype), ALL if dtype == "int32" else FEW)
        yield case(f"{op} nest", reduce(full, NEST), xs(), ALL)
        yield case(f"{op} by name", reduce(f"'{op.capitalize()}'"), xs(), FEW)
        yield case(
            f"{op} gradient",
            f"run(lambda c, r: gradient(lambda x: c.all_reduce('{op}', x), xs[r], dys[r]))",
            graded,
            ALL,
        )
        yield case(f"{op} indexed slices", reduce(full, SLICES), xs(), FEW)
        yield case(
            f"{op} nest gradient",
            f"run(lambda c, r: gradient(lambda x: c.all_reduce('{op}', [x, 2 * x])[0], xs[r], dys[r]))",
            graded,
            FEW,
        )
    for dtype in ("uint8", "int8", "bool", "complex64"):
        yield case(f"{dtype}", reduce("'SUM'"), xs((2,), dtype), FEW, "is not in the list of allowed values")
    yield case("two dtypes", reduce("'SUM'", "[xs[r], tf.constant([r])]"), xs(), FEW)
    yield case("empty list", reduce("'SUM'", "[]"), xs(), FEW)
    yield case("number", reduce("'SUM'", "2.0"), xs(), FEW)
    yield case("None", reduce("'SUM'", "None"), xs(), FEW)
    yield case("unknown op", reduce("'MAX'"), xs(), FEW, "'MAX' is not a valid ReduceOp")
    yield case("op is an int", reduce("3"), xs(), TWO)
    yield case("shapes differ", reduce("'SUM'"), ragged(), TWO, "Shape mismatch in the collective")
    yield case("twice", "run(lambda c, r: c.all_reduce('SUM', c.all_reduce('SUM', xs[r])))", xs(), FEW)
    yield case("one object on all replicas", "_t = xs[0]; run(lambda c, r: c.all_reduce('SUM', _t))", xs(), FEW)


def _runs() -> Iterator[list[Asked]]:
    def case(what: str, call: str, worlds: Worlds = FEW, match: str = "") -> list[Asked]:
        return ask(f"Strategy.run/{what}", T + "Strategy.run", call, xs(), worlds, match)

    yield case("number", "run(lambda c, r: 5)", ALL)
    yield case("None", "run(lambda c, r: None)", ALL)
    yield case("tensor", "run(lambda c, r: xs[r])", ALL)
    yield case("nest", "run(lambda c, r: {'x': xs[r], 'y': (xs[r], [r])})", ALL)
    yield case("same tensor", "run(lambda c, r: xs[0])", FEW)
    yield case("replica id", "run(lambda c, r: c.replica_id_in_sync_group)", ALL)
    yield case("replicas in sync", "run(lambda c, r: c.num_replicas_in_sync)", ALL)
    yield case("arguments", "strategy.run(lambda x, y: (x, y), args=(1,), kwargs={'y': 2})", FEW)
    yield case(
        "function",
        "strategy.run(tf.function(lambda: tf.distribute.get_replica_context().all_reduce('SUM', "
        "tf.constant([1.0, 2.0]) * 1)))",
        FEW,
    )
    yield case(
        "distributed argument",
        "_v = strategy.experimental_distribute_values_from_function(lambda c: xs[int(c.replica_id_in_sync_group)]); "
        "strategy.run(lambda x: x + x, args=(_v,))",
        ALL,
    )
    yield case("raises", "run(lambda c, r: 1 // 0)", FEW)
    yield case("lists of different length", "run(lambda c, r: [1] * (r + 1))", TWO)
    yield case("in run", "run(lambda c, r: strategy.run(lambda: 1))", FEW, "requires being in cross-replica context")
    yield case(
        "reduce in run",
        "run(lambda c, r: strategy.reduce('SUM', xs[r], axis=None))",
        FEW,
        "requires being in cross-replica context",
    )
    yield case(
        "gather in run", "run(lambda c, r: strategy.gather(xs[r], axis=0))", FEW, "requires cross-replica context"
    )
    yield case("args is a number", "strategy.run(lambda x: x, args=5)", TWO)
    yield case("strategy of the context", "run(lambda c, r: c.strategy is strategy)", FEW)
    yield case(
        "saved context",
        "_saved = []; run(lambda c, r: _saved.append(c)); _saved[0].all_reduce('SUM', xs[0])",
        (("mirrored", 2),),
    )
    yield case(
        "in scope",
        "_s = strategy.scope(); _s.__enter__(); _t = [tf.distribute.get_replica_context(), "
        "tf.distribute.in_cross_replica_context()]; _s.__exit__(None, None, None); _t",
        TWO,
    )


def _questions() -> Iterator[list[Asked]]:
    merge = "run(lambda c, r: c.merge_call(lambda s, v: strategy.experimental_local_results(v), args=(xs[r],)))"
    yield ask("ReplicaContext.merge_call/local results", R + "merge_call", merge, xs(), FEW)
    yield ask(
        "ReplicaContext.merge_call/number", R + "merge_call", "run(lambda c, r: c.merge_call(lambda s: 7))", xs(), FEW
    )
    yield ask(
        "num_replicas_in_sync/all", T + "Strategy.num_replicas_in_sync", "strategy.num_replicas_in_sync", xs(), ALL
    )
    yield ask(
        "ReduceOp/members",
        T + "ReduceOp",
        "[str(m) for m in tf.distribute.ReduceOp] + [m.value for m in tf.distribute.ReduceOp]",
        xs(),
        FEW,
    )
    yield ask(
        "has_strategy/outside",
        T + "has_strategy",
        "[tf.distribute.has_strategy(), tf.distribute.in_cross_replica_context()]",
        xs(),
        TWO,
    )
    yield ask(
        "CommunicationOptions/negative",
        T + "experimental.CommunicationOptions",
        "tf.distribute.experimental.CommunicationOptions(bytes_per_pack=-1)",
        xs(),
        TWO,
        "bytes_per_pack",
    )
    yield ask(
        "CommunicationOptions/implementation",
        T + "experimental.CommunicationOptions",
        "tf.distribute.experimental.CommunicationOptions(implementation='FOO')",
        xs(),
        TWO,
    )


S = T + "Strategy."
VALUES = "_v = strategy.experimental_distribute_values_from_function(lambda c: xs[int(c.replica_id_in_sync_group)]); "


def _reduce() -> Iterator[list[Asked]]:
    for op in ("SUM", "MEAN"):
        for axis in (None, 0, 1, -1, (0, 1)):
            yield ask(
                f"Strategy.reduce/{op} axis {axis}",
                S + "reduce",
                f"{VALUES}strategy.reduce('{op}', _v, axis={axis})",
                xs(),
                ALL if axis in (None, 0) else FEW,
            )
        yield ask(
            f"Strategy.reduce/{op} int32",
            S + "reduce",
            f"{VALUES}strategy.reduce('{op}', _v, axis=None)",
            xs((2,), "int32"),
            FEW,
        )
        yield ask(
            f"Strategy.reduce/{op} int32 axis 0",
            S + "reduce",
            f"{VALUES}strategy.reduce('{op}', _v, axis=0)",
            xs((2,), "int32"),
            FEW,
        )
        yield ask(f"Strategy.reduce/{op} plain", S + "reduce", f"strategy.reduce('{op}', xs[0], axis=None)", xs(), FEW)
        yield ask(
            f"Strategy.reduce/{op} ragged axis 0",
            S + "reduce",
            f"{VALUES}strategy.reduce('{op}', _v, axis=0)",
            ragged(),
            FEW,
        )


def _reduce_odd() -> Iterator[list[Asked]]:
    yield ask(
        "Strategy.reduce/no axis",
        S + "reduce",
        f"{VALUES}strategy.reduce('SUM', _v)",
        xs(),
        TWO,
        "missing 1 required positional",
    )
    yield ask(
        "Strategy.reduce/unknown op",
        S + "reduce",
        f"{VALUES}strategy.reduce('PROD', _v, axis=None)",
        xs(),
        FEW,
        "not a valid ReduceOp",
    )
    yield ask(
        "Strategy.reduce/axis out of range", S + "reduce", f"{VALUES}strategy.reduce('SUM', _v, axis=5)", xs(), TWO
    )
    yield ask(
        "Strategy.reduce/of run", S + "reduce", "strategy.reduce('SUM', run(lambda c, r: xs[r]), axis=None)", xs(), ALL
    )


def _gather() -> Iterator[list[Asked]]:
    for axis in (0, 1):
        yield ask(f"Strategy.gather/axis {axis}", S + "gather", f"{VALUES}strategy.gather(_v, axis={axis})", xs(), ALL)
        yield ask(
            f"Strategy.gather/ragged axis {axis}",
            S + "gather",
            f"{VALUES}strategy.gather(_v, axis={axis})",
            ragged(axis),
            FEW,
        )
    yield ask("Strategy.gather/plain", S + "gather", "strategy.gather(xs[0], axis=0)", xs(), FEW)
    yield ask("Strategy.gather/int32", S + "gather", f"{VALUES}strategy.gather(_v, axis=0)", xs((2,), "int32"), FEW)
    yield ask("Strategy.gather/0d", S + "gather", f"{VALUES}strategy.gather(_v, axis=0)", xs(()), TWO)
    yield ask(
        "Strategy.gather/shapes differ off axis", S + "gather", f"{VALUES}strategy.gather(_v, axis=0)", ragged(1), TWO
    )


def _local() -> Iterator[list[Asked]]:
    D = S + "experimental_distribute_values_from_function"  # noqa: N806
    name = "experimental_distribute_values_from_function"
    for what, text in {
        "tensor": "xs[int(c.replica_id_in_sync_group)]",
        "number": "5",
        "nest": "{'a': xs[int(c.replica_id_in_sync_group)], 'b': [c.num_replicas_in_sync]}",
    }.items():
        yield ask(f"Strategy.{name}/{what}", D, f"strategy.{name}(lambda c: {text})", xs(), ALL)
    L = S + "experimental_local_results"  # noqa: N806
    yield ask(
        "Strategy.experimental_local_results/distributed",
        L,
        f"{VALUES}strategy.experimental_local_results(_v)",
        xs(),
        ALL,
    )
    yield ask("Strategy.experimental_local_results/plain", L, "strategy.experimental_local_results(xs[0])", xs(), ALL)
    yield ask("Strategy.experimental_local_results/list", L, "strategy.experimental_local_results([1, 2])", xs(), FEW)


def _extended() -> Iterator[list[Asked]]:
    E = T + "StrategyExtended."  # noqa: N806
    yield ask(
        "StrategyExtended.reduce_to/itself",
        E + "reduce_to",
        f"{VALUES}strategy.extended.reduce_to('SUM', _v, _v)".replace("'SUM'", "tf.distribute.ReduceOp.SUM"),
        xs(),
        ALL,
    )
    yield ask(
        "StrategyExtended.reduce_to/device",
        E + "reduce_to",
        f"{VALUES}strategy.extended.reduce_to(tf.distribute.ReduceOp.MEAN, _v, '/cpu:0')",
        xs(),
        FEW,
    )
    yield ask(
        "StrategyExtended.batch_reduce_to/two",
        E + "batch_reduce_to",
        f"{VALUES}strategy.extended.batch_reduce_to(tf.distribute.ReduceOp.SUM, [(_v, _v), (_v, _v)])",
        xs(),
        FEW,
    )


CALLS: list[Asked] = [
    asked
    for family in (_all_gather, _all_reduce, _runs, _questions, _reduce, _reduce_odd, _gather, _local, _extended)
    for several in family()
    for asked in several
]
