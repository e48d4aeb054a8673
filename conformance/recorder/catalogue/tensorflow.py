"""The calls of tf.distribute: replica contexts and strategies, in every kind of world.

``run(f)`` calls ``f(context, number)`` on every replica; each replica finds its array in ``xs`` by its number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from collshim.conformance.recorder.asked import Asked, Calls, Inputs, joined, part
from collshim.conformance.recorder.trees import given

T = "tensorflow.distribute."
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
    name: str, what: str, call: str, inputs: Make, worlds: Worlds = FEW, match: str = "", *, module: str = T
) -> list[Asked]:
    """Return the same call in several worlds; ``inputs(size)`` returns every process's inputs."""
    api = (module + name,)
    return [Asked(f"{name}/{what}", call, api, size, (inputs(size),), match, world=world) for world, size in worlds]


def xs(shape: Sequence[int] = (2, 3), dtype: str = "float32") -> Make:
    """Return one array per replica."""
    return lambda size: {"xs": [part(rank, shape, dtype) for rank in range(size)]}


def ragged(axis: int = 0) -> Make:
    """Return one array per replica, each a row, or a column, longer than the one before."""
    return lambda size: {"xs": [part(rank, (rank + 1, 2) if axis == 0 else (2, rank + 1)) for rank in range(size)]}


def graded(size: int) -> Inputs:
    """Return one array per replica, and the gradients of their results."""
    return {
        "xs": [part(rank, (2,)) for rank in range(size)],
        "dys": [given([1.0 + rank, 3.0], "float32") for rank in range(size)],
    }


NEST = "{'a': xs[r], 'b': [xs[r], (xs[r],)]}"
SLICES = "tf.IndexedSlices(xs[r], tf.constant([r, 0]), tf.constant([8, 3]))"
AXIS = "Requires start <= limit"


def each(name: str, calls: Calls, inputs: Make, worlds: Worlds = FEW) -> list[Asked]:
    """Return calls that differ only in their texts."""
    found: list[Asked] = []
    for what, call in calls.items():
        text, match = (call, "") if isinstance(call, str) else call
        found += ask(name, what, text, inputs, worlds, match)
    return found


def gather(value: str = "xs[r]", axis: object = 0, more: str = "") -> str:
    """Return a gather on every replica."""
    return f"run(lambda c, r: c.all_gather({value}, axis={axis}{more}))"


_OPTIONS = ", options=tf.distribute.experimental.CommunicationOptions(bytes_per_pack=1)"
_ODD_GATHERS: Calls = {
    "empty list": gather("[]"),
    "list of two numbers": gather("[1.0, 2.0]"),
    "numpy": gather("np.array([r, 5.0], 'float32')"),
    "None": gather("None"),
    **{f"axis {axis}": (gather(axis=axis), AXIS) for axis in (-1, -2, 5)},
    "indexed slices": (gather(SLICES), "all_gather does not support IndexedSlices"),
    "options": gather(more=_OPTIONS),
    "outside run": "_c = tf.distribute.get_replica_context(); [_c.num_replicas_in_sync, _c.strategy is strategy]",
}


def _all_gather() -> Iterator[list[Asked]]:
    case = partial(ask, "ReplicaContext.all_gather")
    for name, shape in {"1d": (3,), "2d": (2, 3), "3d": (2, 1, 3), "empty": (0, 3)}.items():
        yield case(name, gather(), xs(shape), ALL)
    yield case("axis 1", gather(axis=1), xs((2, 3, 1)), ALL)
    yield case("axis 2", gather(axis=2), xs((2, 3, 1)))
    yield case("ragged", gather(), ragged(), ALL)
    yield case("ragged axis 1", gather(axis=1), ragged(1), ALL)
    yield case("some empty", gather(), lambda size: {"xs": [part(rank, (rank, 2)) for rank in range(size)]})
    for dtype in ("float16", "float64", "int32", "int64"):
        yield case(dtype, gather(), xs((2,), dtype))
    for dtype in ("int8", "uint8", "bool", "complex64", "bfloat16"):
        yield case(dtype, gather(), xs((2,), dtype), match="not in list of allowed values")
    yield case("nest", gather(NEST), xs(), ALL)
    yield case("mixed dtypes", gather("[xs[r], tf.constant([r])]"), xs((2,)))
    yield case("0d", gather(), xs(()), ALL, AXIS)
    yield case("0d int32", gather(), xs((), "int32"))
    yield each("ReplicaContext.all_gather", _ODD_GATHERS, xs())
    yield case("axis is text", gather(axis="'x'"), xs(), TWO)
    yield case("axis is None", gather(axis=None), xs(), TWO)
    yield case("no axis", "run(lambda c, r: c.all_gather(xs[r]))", xs(), TWO, "missing 1 required positional")
    yield case("shapes differ off axis", gather(), ragged(1), TWO, "Shape mismatch in the collective")
    yield case("ndims differ", gather(), lambda size: {"xs": [part(r, (1,) * (r + 1)) for r in range(size)]}, TWO)
    weights = "xs[r], tf.constant([1.0 + r + i for i in range(2 * size)])"
    yield case("gradient", f"run(lambda c, r: gradient(lambda x: c.all_gather(x, axis=0), {weights}))", graded, ALL)


def _all_reduce() -> Iterator[list[Asked]]:
    def reduce(op: str, value: str = "xs[r]") -> str:
        return f"run(lambda c, r: c.all_reduce({op}, {value}))"

    case = partial(ask, "ReplicaContext.all_reduce")
    for op in ("SUM", "MEAN"):
        full = f"tf.distribute.ReduceOp.{op}"
        for name, shape in {"0d": (), "1d": (3,), "2d": (2, 3), "empty": (0, 3)}.items():
            yield case(f"{op} {name}", reduce(full), xs(shape), ALL)
        for dtype in ("float16", "bfloat16", "float64", "int32", "int64"):
            yield case(f"{op} {dtype}", reduce(full), xs((2,), dtype), ALL if dtype == "int32" else FEW)
        yield case(f"{op} nest", reduce(full, NEST), xs(), ALL)
        yield case(f"{op} by name", reduce(f"'{op.capitalize()}'"), xs())
        yield case(f"{op} indexed slices", reduce(full, SLICES), xs())
        gradient = f"run(lambda c, r: gradient(lambda x: c.all_reduce('{op}', {{}}, xs[r], dys[r]))"
        yield case(f"{op} gradient", gradient.replace("{}", "x)"), graded, ALL)
        yield case(f"{op} nest gradient", gradient.replace("{}", "[x, 2 * x])[0]"), graded)
    for dtype in ("uint8", "int8", "bool", "complex64"):
        yield case(dtype, reduce("'SUM'"), xs((2,), dtype), match="is not in the list of allowed values")
    few: Calls = {
        "two dtypes": reduce("'SUM'", "[xs[r], tf.constant([r])]"),
        "empty list": reduce("'SUM'", "[]"),
        "number": reduce("'SUM'", "2.0"),
        "None": reduce("'SUM'", "None"),
        "unknown op": (reduce("'MAX'"), "'MAX' is not a valid ReduceOp"),
        "twice": reduce("'SUM'", "c.all_reduce('SUM', xs[r])"),
        "one object on all replicas": "_t = xs[0]; " + reduce("'SUM'", "_t"),
    }
    yield each("ReplicaContext.all_reduce", few, xs())
    yield case("op is an int", reduce("3"), xs(), TWO)
    yield case("shapes differ", reduce("'SUM'"), ragged(), TWO, "Shape mismatch in the collective")


VALUES = "_v = strategy.experimental_distribute_values_from_function(lambda c: xs[int(c.replica_id_in_sync_group)]); "


_RUN_EVERYWHERE = {
    "number": "run(lambda c, r: 5)",
    "None": "run(lambda c, r: None)",
    "tensor": "run(lambda c, r: xs[r])",
    "nest": "run(lambda c, r: {'x': xs[r], 'y': (xs[r], [r])})",
    "replica id": "run(lambda c, r: c.replica_id_in_sync_group)",
    "replicas in sync": "run(lambda c, r: c.num_replicas_in_sync)",
    "distributed argument": VALUES + "strategy.run(lambda x: x + x, args=(_v,))",
}


def _runs() -> Iterator[list[Asked]]:
    yield each("Strategy.run", _RUN_EVERYWHERE, xs(), ALL)
    reduced = "tf.distribute.get_replica_context().all_reduce('SUM', tf.constant([1.0, 2.0]) * 1)"
    crossing = "requires being in cross-replica context"
    few: Calls = {
        "same tensor": "run(lambda c, r: xs[0])",
        "arguments": "strategy.run(lambda x, y: (x, y), args=(1,), kwargs={'y': 2})",
        "function": f"strategy.run(tf.function(lambda: {reduced}))",
        "raises": "run(lambda c, r: 1 // 0)",
        "in run": ("run(lambda c, r: strategy.run(lambda: 1))", crossing),
        "reduce in run": ("run(lambda c, r: strategy.reduce('SUM', xs[r], axis=None))", crossing),
        "gather in run": ("run(lambda c, r: strategy.gather(xs[r], axis=0))", "requires cross-replica context"),
        "strategy of the context": "run(lambda c, r: c.strategy is strategy)",
    }
    yield each("Strategy.run", few, xs())
    asked = "[tf.distribute.get_replica_context(), tf.distribute.in_cross_replica_context()]"
    two = {
        "lists of different length": "run(lambda c, r: [1] * (r + 1))",
        "args is a number": "strategy.run(lambda x: x, args=5)",
        "in scope": f"_s = strategy.scope(); _s.__enter__(); _t = {asked}; _s.__exit__(None, None, None); _t",
    }
    yield each("Strategy.run", two, xs(), TWO)
    saved = "_saved = []; run(lambda c, r: _saved.append(c)); _saved[0].all_reduce('SUM', xs[0])"
    yield ask("Strategy.run", "saved context", saved, xs(), (("mirrored", 2),))


def _questions() -> Iterator[list[Asked]]:
    merge = "run(lambda c, r: c.merge_call(lambda s, v: strategy.experimental_local_results(v), args=(xs[r],)))"
    yield ask("ReplicaContext.merge_call", "local results", merge, xs())
    yield ask("ReplicaContext.merge_call", "number", "run(lambda c, r: c.merge_call(lambda s: 7))", xs())
    count = "num_replicas_in_sync"
    yield ask(count, "all", f"strategy.{count}", xs(), ALL, module=T + "Strategy.")
    members = "[str(m) for m in tf.distribute.ReduceOp] + [m.value for m in tf.distribute.ReduceOp]"
    yield ask("ReduceOp", "members", members, xs())
    outside = "[tf.distribute.has_strategy(), tf.distribute.in_cross_replica_context()]"
    yield ask("has_strategy", "outside", outside, xs(), TWO)
    for what, option, match in (
        ("negative", "bytes_per_pack=-1", "bytes_per_pack"),
        ("implementation", "implementation='FOO'", ""),
    ):
        text = f"tf.distribute.experimental.CommunicationOptions({option})"
        yield ask("CommunicationOptions", what, text, xs(), TWO, match, module=T + "experimental.")


def _reduce() -> Iterator[list[Asked]]:
    def reduce(op: str, axis: object = None, value: str = "_v", before: str = VALUES) -> str:
        return f"{before}strategy.reduce('{op}', {value}, axis={axis})"

    case = partial(ask, "Strategy.reduce")
    for op in ("SUM", "MEAN"):
        for axis in (None, 0, 1, -1, (0, 1)):
            yield case(f"{op} axis {axis}", reduce(op, axis), xs(), ALL if axis in (None, 0) else FEW)
        yield case(f"{op} int32", reduce(op), xs((2,), "int32"))
        yield case(f"{op} int32 axis 0", reduce(op, 0), xs((2,), "int32"))
        yield case(f"{op} plain", reduce(op, value="xs[0]", before=""), xs())
        yield case(f"{op} ragged axis 0", reduce(op, 0), ragged())
    yield case("no axis", f"{VALUES}strategy.reduce('SUM', _v)", xs(), TWO, "missing 1 required positional")
    yield case("unknown op", reduce("PROD"), xs(), match="not a valid ReduceOp")
    yield case("axis out of range", reduce("SUM", 5), xs(), TWO)
    yield case("of run", reduce("SUM", value="run(lambda c, r: xs[r])", before=""), xs(), ALL)


def _gather() -> Iterator[list[Asked]]:
    case, gathered = partial(ask, "Strategy.gather"), f"{VALUES}strategy.gather(_v, axis={{}})"
    on_0 = gathered.replace("{}", "0")
    for axis in (0, 1):
        yield case(f"axis {axis}", gathered.replace("{}", str(axis)), xs(), ALL)
        yield case(f"ragged axis {axis}", gathered.replace("{}", str(axis)), ragged(axis))
    yield case("plain", "strategy.gather(xs[0], axis=0)", xs())
    yield case("int32", on_0, xs((2,), "int32"))
    yield case("0d", on_0, xs(()), TWO)
    yield case("shapes differ off axis", on_0, ragged(1), TWO)


def _local() -> Iterator[list[Asked]]:
    distribute, local = "experimental_distribute_values_from_function", "experimental_local_results"
    values = {
        "tensor": "xs[int(c.replica_id_in_sync_group)]",
        "number": "5",
        "nest": "{'a': xs[int(c.replica_id_in_sync_group)], 'b': [c.num_replicas_in_sync]}",
    }
    calls = {what: f"strategy.{distribute}(lambda c: {text})" for what, text in values.items()}
    yield each(f"Strategy.{distribute}", calls, xs(), ALL)
    everywhere = {"distributed": f"{VALUES}strategy.{local}(_v)", "plain": f"strategy.{local}(xs[0])"}
    yield each(f"Strategy.{local}", everywhere, xs(), ALL)
    yield ask(f"Strategy.{local}", "list", f"strategy.{local}([1, 2])", xs())


def _extended() -> Iterator[list[Asked]]:
    reduce_to = VALUES + "strategy.extended.{}reduce_to(tf.distribute.ReduceOp."
    plain, batch = reduce_to.replace("{}", ""), reduce_to.replace("{}", "batch_")
    yield ask("StrategyExtended.reduce_to", "itself", f"{plain}SUM, _v, _v)", xs(), ALL)
    yield ask("StrategyExtended.reduce_to", "device", f"{plain}MEAN, _v, '/cpu:0')", xs())
    yield ask("StrategyExtended.batch_reduce_to", "two", f"{batch}SUM, [(_v, _v), (_v, _v)])", xs())


CALLS = joined(_all_gather, _all_reduce, _runs, _questions, _reduce, _gather, _local, _extended)
