"""MindSpore: ``communication`` and its ``comm_func``, and the primitives of ``ops``.

The CPU backend knows no group "hccl_world_group", the default everywhere: the group is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from collshim.conformance.recorder.asked import Asked, Inputs, ask, part
from collshim.conformance.recorder.catalogue.torch_reductions import one
from collshim.conformance.recorder.sweep import SHAPES
from collshim.conformance.recorder.trees import given

CF = "mindspore.communication.comm_func."
C = "mindspore.communication."
W = "comm.GlobalComm.WORLD_COMM_GROUP"
DTYPES = ("bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64")


def bad(
    name: str, texts: dict[str, tuple[str, str]], inputs: Callable[[int, int], Inputs] | None = None
) -> Iterator[list[Asked]]:
    """Calls of ``comm_func`` that are refused: what is wrong, the arguments, and what the text of the error has."""
    for what, (arguments, match) in texts.items():
        yield ask(
            f"comm_func.{name}/{what}", CF + name, f"cf.{name}({arguments})", inputs or one(), sizes=(1, 2), match=match
        )


def _comm_func() -> Iterator[list[Asked]]:
    forms = {
        "all_reduce": f"x, group={W}",
        "all_gather_into_tensor": f"x, group={W}",
        "reduce_scatter_tensor": f"whole, group={W}",
        "reduce": f"x, 0, group={W}",
        "gather_into_tensor": f"x, 0, group={W}",
        "scatter_tensor": f"whole, 0, group={W}",
        "broadcast": f"x, 0, group={W}",
        "all_to_all_single_with_output_shape": f"(size * 2, 3), whole, group={W}",
        "all_to_all_with_output_shape": f"[(2, 3)] * size, [x] * size, group={W}",
        "barrier": f"group={W}",
    }
    for name, arguments in forms.items():
        yield ask(f"comm_func.{name}/all", CF + name, f"cf.{name}({arguments})", _both)
    for name in ("all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor"):
        text = f"_y, h = cf.{name}({forms[name]}, async_op=True); [_y, h, h.wait()]"
        yield ask(f"comm_func.{name}/async", CF + name, text, _both, sizes=(1, 2))
    for op in ("prod", "min", "max"):
        yield ask(f"comm_func.all_reduce/{op}", CF + "all_reduce", f"cf.all_reduce(x, '{op}', {W})", one(), sizes=(2,))
    for root in range(1, 4):
        yield ask(
            f"comm_func.broadcast/from {root}",
            CF + "broadcast",
            f"cf.broadcast(x, {root}, {W})",
            one(),
            sizes=range(root + 1, 5),
        )
    for dtype in DTYPES:
        yield ask(
            f"comm_func.broadcast/{dtype}", CF + "broadcast", f"cf.broadcast(x, 0, {W})", one((3,), dtype), sizes=(2, 3)
        )
    for name, shape in SHAPES.items():
        yield ask(f"comm_func.broadcast/{name}", CF + "broadcast", f"cf.broadcast(x, 0, {W})", one(shape), sizes=(1, 2))
    yield ask(
        "comm_func.broadcast/default group", CF + "broadcast", "cf.broadcast(x, 0)", one(), sizes=(1, 2), world="alias"
    )
    yield ask(
        "comm_func.broadcast/gradient",
        CF + "broadcast",
        f"gradient(lambda x: cf.broadcast(x, 0, {W}), x, dy)",
        graded,
        sizes=(1, 2),
        alone=True,
    )
    yield ask(
        "comm_func.all_reduce/gradient",
        CF + "all_reduce",
        f"gradient(lambda x: cf.all_reduce(x, group={W})[0], x, dy)",
        graded,
        sizes=(1, 2),
    )
    send = f"cf.send(x, 1, group={W}) if rank == 0 else cf.recv(x, 0, group={W}) if rank == 1 else None"
    yield ask("comm_func.send/pair", (CF + "send", CF + "recv"), send, one(), sizes=(2,), alone=True)


def _both(rank: int, size: int) -> Inputs:
    return {"x": part(rank), "whole": part(rank, (2 * size, 3))}


def _two_dtypes(rank: int, size: int) -> Inputs:
    return {"x": part(rank), "y": part(rank, dtype="int32")}


def graded(rank: int, size: int) -> Inputs:
    """An array, and the gradient of what is made of it."""
    return {"x": part(rank, (2,)), "dy": given([1.0 + rank, 3.0], "float32")}


def _refused() -> Iterator[list[Asked]]:
    tensor = "must be tensor"
    yield from bad("all_reduce", {
        "not a tensor": ("1", tensor),
        "numpy": ("np.ones(2)", ""),
        "op is an int": ("x, op=1", "op type must be str"),
        "unknown op": ("x, op='foo'", "must be one of sum, prod, min, max"),
        "avg": ("x, op='avg'", "must be one of sum, prod, min, max"),
        "group is an int": ("x, group=1", ""),
        "group is None": ("x, group=None", "must be type of string"),
        "unknown group": ("x, group='nope'", "does not exist"),
        "no argument": ("", "missing 1 required positional"),
    })  # fmt: skip
    yield from bad("all_gather_into_tensor", {
        "not a tensor": ("[1]", tensor),
        "group is None": ("x, group=None", "must be type of string"),
        "unknown group": ("x, group='nope'", "does not exist"),
    })  # fmt: skip
    yield from bad("reduce_scatter_tensor", {"not a tensor": ("1", tensor), "group is None": ("x, group=None", "")})
    yield from bad("reduce_scatter_tensor", {"indivisible": (f"x, group={W}", "")}, one((5,)))
    yield from bad(
        "reduce", {"not a tensor": ("1, 0", ""), "dst is text": ("x, 'a'", ""), "no dst": ("x", "missing 1")}
    )
    yield from bad("gather_into_tensor", {"not a tensor": ("1", ""), "dst is text": ("x, dst='a'", "")})
    yield from bad("scatter_tensor", {"not a tensor": ("1", ""), "src is text": ("x, src='a'", "src must be int")})
    yield from bad(
        "broadcast",
        {
            "not a tensor": ("1", ""),
            "src is text": ("x, src='a'", "src must be int"),
            "src out of range": (f"x, 99, {W}", "99"),
        },
    )
    yield from bad("barrier", {"group is an int": ("group=1", "must be type of string")})
    yield from bad("send", {"not a tensor": ("1", tensor), "dst is text": ("x, 'a'", "")})
    yield from bad("recv", {"src is text": ("x, src='a'", "src must be int"), "not a tensor": ("1", "")})
    yield from bad("isend", {"not a tensor": ("1", tensor)})
    yield from bad("irecv", {"src is text": ("x, src='a'", "")})
    lists, single = "all_to_all_with_output_shape", "all_to_all_single_with_output_shape"
    yield from bad(lists, {"tensor for list": ("[(1,)], x", "Expected list or tuple")})
    text = f"cf.{lists}([(2, 3)] * 2, [x, y])"
    yield ask(f"comm_func.{lists}/dtypes differ", CF + lists, text, _two_dtypes, sizes=(2,), match="must be the same")
    yield from bad(single, {"shape is a list": ("[size], x, group=None", "")}, one((5,)))
    text = f"cf.{single}((5,), x, group=None)"
    yield ask(f"comm_func.{single}/indivisible", CF + single, text, one((5,)), sizes=(2,), match="must be divided")
    yield from bad("P2POp", {
        "op is an int": ("1, x, 0", "op must be type of string or function"),
        "unknown op": ("'foo', x, 0", "isend"),
        "not a tensor": ("'isend', 1, 0", "to be type of tuple or Tensor"),
        "peer is text": ("'isend', x, 'a'", "peer must be type of int"),
        "tag": ("'isend', x, 0, tag=1", "not support yet"),
    })  # fmt: skip
    yield from bad("batch_isend_irecv", {
        "tuple": ("()", "must be type of list"),
        "empty": ("[]", "can not be empty list"),
        "no operation": ("[1]", ""),
        "no dtype": ("[cf.P2POp('irecv', (1,), 0)]", "recv_dtype"),
    })  # fmt: skip


def _of(name: str, what: str, text: str, match: str = "", sizes: Sequence[int] = (1, 2, 3)) -> list[Asked]:
    """A function of ``mindspore.communication``, asked on every one of these numbers of ranks."""
    return ask(f"{name}/{what}", C + name, text, sizes=sizes, match=match)


def _ranks() -> Iterator[list[Asked]]:
    yield _of(
        "get_rank",
        "world",
        "[comm.get_rank(), comm.get_group_size(), comm.get_local_rank(), comm.get_local_rank_size()]",
        sizes=(1, 2, 3, 4),
    )
    yield _of("get_rank", "named", f"[comm.get_rank('hccl_world_group'), comm.get_rank({W}), comm.get_group_size({W})]")
    yield _of(
        "GlobalComm",
        "after init",
        "[comm.GlobalComm.WORLD_COMM_GROUP, comm.GlobalComm.BACKEND, comm.GlobalComm.INITED]",
    )
    for name in ("get_rank", "get_group_size"):
        yield _of(name, "unknown group", f"comm.{name}('nope')", "The group nope does not exist")
        yield _of(name, "nccl", f"comm.{name}('nccl_world_group')", "The group nccl_world_group does not exist")
        yield _of(name, "group is an int", f"comm.{name}(1)", "must be type of string")
        yield _of(name, "group is None", f"comm.{name}(None)", "must be type of string")
    yield _of("get_process_group_ranks", "world", "comm.get_process_group_ranks()", sizes=(1, 2, 3, 4))
    yield _of("get_comm_name", "world", "comm.get_comm_name()")
    yield _of("get_world_rank_from_group_rank", "world", f"comm.get_world_rank_from_group_rank({W}, 0)")
    yield _of(
        "get_world_rank_from_group_rank",
        "hccl",
        "comm.get_world_rank_from_group_rank('hccl_world_group', 0)",
        "does not exist",
    )
    yield _of("get_world_rank_from_group_rank", "out of range", f"comm.get_world_rank_from_group_rank({W}, 99)", "99")
    yield _of("get_group_rank_from_world_rank", "world", f"comm.get_group_rank_from_world_rank(0, {W})")
    yield _of(
        "get_group_rank_from_world_rank",
        "rank is text",
        f"comm.get_group_rank_from_world_rank('a', {W})",
        "must be type of int",
    )
    yield _of("get_group_rank_from_world_rank", "out of range", f"comm.get_group_rank_from_world_rank(99, {W})", "99")


def _groups() -> Iterator[list[Asked]]:
    made = "comm.create_group('g', [0, 1]) if rank < 2 else None; "
    told = "[comm.get_rank('g'), comm.get_group_size('g'), comm.get_process_group_ranks('g')]"
    end = " if rank < 2 else None; _end = comm.destroy_group('g') if rank < 2 else None; _told"
    yield _of("create_group", "pair", made + "_told = " + told + end, sizes=(2, 3, 4))
    turned = (
        "comm.create_group('t', [1, 0]) if rank < 2 else None; _told = [comm.get_rank('t'), "
        "comm.get_process_group_ranks('t'), comm.get_world_rank_from_group_rank('t', 0)]"
    )
    yield _of("create_group", "turned", turned + end.replace("'g'", "'t'"), sizes=(2, 3, 4))
    yield _of(
        "create_group",
        "not a member",
        "comm.create_group('n', [0]) if rank == 0 else None; comm.get_rank('n')",
        sizes=(2, 3),
    )


def _odd_groups() -> Iterator[list[Asked]]:
    refused = {
        "name is an int": ("1, [0, 1]", "must be type of string"),
        "tuple": ("'gt', (0, 1)", "must be type of list"),
        "empty": ("'ge', []", "size should be greater than 1"),
        "duplicates": ("'gd', [0, 0]", "has duplicate data"),
        "options": ("'go', [0, 1], {}", ""),
    }
    for what, (arguments, match) in refused.items():
        yield _of("create_group", what, f"comm.create_group({arguments})", match, sizes=(2,))
    yield _of(
        "create_group",
        "again, other ranks",
        "comm.create_group('h', [0, 1]); comm.create_group('h', [1, 0])",
        "has been created",
        sizes=(2,),
    )
    yield _of(
        "create_group",
        "again, same ranks",
        "comm.create_group('i', [0, 1]); comm.create_group('i', [0, 1])",
        sizes=(2,),
    )
    yield _of("destroy_group", "world", f"comm.destroy_group({W})", "does not support destruction")
    yield _of("destroy_group", "unknown", "comm.destroy_group('nope')", "nope")
    yield _of("init", "name is an int", "comm.init(1)", "must be type of string")
    yield _of("init", "unknown name", "comm.init('bad')", "must be one of")
    yield _of("init", "twice", "comm.init('mccl')")
    yield ask("release/then get_rank", C + "release", "comm.release(); comm.get_rank()", sizes=(1, 2), alone=True)


def _primitives() -> Iterator[list[Asked]]:
    module = "mindspore.ops."
    for name, shape in SHAPES.items():
        yield ask(f"ops.AllReduce/{name}", module + "AllReduce", "ops.AllReduce()(x)", one(shape))
        yield ask(f"ops.AllGather/{name}", module + "AllGather", "ops.AllGather()(x)", one(shape))
    for dtype in DTYPES:
        yield ask(f"ops.AllReduce/{dtype}", module + "AllReduce", "ops.AllReduce()(x)", one((3,), dtype), sizes=(2,))
        yield ask(f"ops.AllGather/{dtype}", module + "AllGather", "ops.AllGather()(x)", one((3,), dtype), sizes=(2,))
    for op in ("max", "min", "prod"):
        yield ask(f"ops.AllReduce/{op}", module + "AllReduce", f"ops.AllReduce('{op}')(x)", one(), sizes=(2,))
    for root in range(2):
        yield ask(
            f"ops.Broadcast/from {root}",
            module + "Broadcast",
            f"ops.Broadcast({root})((x,))",
            one(),
            sizes=range(root + 1, 5),
        )
    others = {
        "ReduceScatter": "ops.ReduceScatter()(whole)",
        "Reduce": "ops.Reduce(0)(x)",
        "CollectiveScatter": "ops.CollectiveScatter(0)(whole)",
        "CollectiveGather": "ops.CollectiveGather(0)(x)",
        "Barrier": "ops.Barrier()()",
        "AlltoAll": "ops.AlltoAll(size, 0, 1)(whole)",
    }
    for name, text in others.items():
        yield ask(f"ops.{name}/all", module + name, text, _both, sizes=(2, 3))
    yield ask(
        "ops.AllReduce/group is an int",
        module + "AllReduce",
        "ops.AllReduce('sum', 1)",
        sizes=(1, 2),
        match="must be str",
    )
    yield ask("ops.AllReduce/op is an int", module + "AllReduce", "ops.AllReduce(1)", sizes=(1, 2), match="must be str")
    yield ask("ops.AllGather/group is an int", module + "AllGather", "ops.AllGather(1)", sizes=(1, 2))
    yield ask(
        "ops.AllGather/unknown group",
        module + "AllGather",
        "ops.AllGather('nope')",
        sizes=(1, 2),
        match="does not exist",
    )
    yield ask(
        "ops.ReduceScatter/indivisible",
        module + "ReduceScatter",
        "ops.ReduceScatter()(x)",
        one((5,)),
        sizes=(2,),
        match="must be divided",
    )
    yield ask("ops.AlltoAll/wrong count", module + "AlltoAll", "ops.AlltoAll(9, 0, 1)", sizes=(2,))
    yield ask(
        "ops.AllReduce/gradient", module + "AllReduce", "gradient(ops.AllReduce(), x, dy)", graded, sizes=(1, 2, 3)
    )
    yield ask(
        "ops.Broadcast/gradient",
        module + "Broadcast",
        "gradient(lambda x: ops.Broadcast(0)((x,))[0], x, dy)",
        graded,
        sizes=(1, 2, 3),
    )


_FAMILIES = (_comm_func, _refused, _ranks, _groups, _odd_groups, _primitives)
CALLS = [asked for family in _FAMILIES for several in family() for asked in several]
