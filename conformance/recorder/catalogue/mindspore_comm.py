"""MindSpore: ``communication`` and its ``comm_func``, and the primitives of ``ops``.

The CPU backend does not know the group "hccl_world_group", the default everywhere, so the calls name the group.
"""

from __future__ import annotations

from collections.abc import Iterator

from collshim.conformance.recorder.asked import Asked, Calls, Inputs, Module, joined, part
from collshim.conformance.recorder.catalogue.torch_reductions import graded, one
from collshim.conformance.recorder.sweep import SHAPES, Sweep, swept

FUNC = Module("mindspore.communication.comm_func.", "cf.", "comm_func.")
COMM = Module("mindspore.communication.", "comm.")
OPS = Module("mindspore.ops.", "ops.", "ops.")
W = "comm.GlobalComm.WORLD_COMM_GROUP"
DTYPES = ("bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64")
FORMS = {
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


def _comm_func() -> Iterator[list[Asked]]:
    for name, arguments in FORMS.items():
        yield FUNC(name, "all", arguments, _both)
    for name in ("all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor"):
        text = "_y, h = {}; [_y, h, h.wait()]"
        yield FUNC(name, "async", f"{FORMS[name]}, async_op=True", _both, (1, 2), text=text)
    yield FUNC.each("all_reduce", {op: f"x, '{op}', {W}" for op in ("prod", "min", "max")}, one(), (2,))
    yield FUNC("broadcast", "default group", "x, 0", one(), (1, 2), world="alias")
    text = "gradient(lambda x: {}, x, dy)"
    yield FUNC("broadcast", "gradient", f"x, 0, {W}", graded(), (1, 2), text=text, alone=True)
    text = "gradient(lambda x: {}[0], x, dy)"
    yield FUNC("all_reduce", "gradient", FORMS["all_reduce"], graded(), (1, 2), text=text)
    pair = f"{{}} if rank == 0 else cf.recv(x, 0, group={W}) if rank == 1 else None"
    recv = (FUNC.path + "recv",)
    yield FUNC("send", "pair", f"x, 1, group={W}", one(), (2,), text=pair, also=recv, alone=True)


def _both(rank: int, size: int) -> Inputs:
    return {"x": part(rank), "whole": part(rank, (2 * size, 3))}


def _two_dtypes(rank: int, size: int) -> Inputs:
    return {"x": part(rank), "y": part(rank, dtype="int32")}


_TENSOR = "must be tensor"
_UNKNOWN_OP = "must be one of sum, prod, min, max"
_TEXT = "must be type of string"
_REFUSED: dict[str, Calls] = {
    "all_reduce": {
        "not a tensor": ("1", _TENSOR),
        "numpy": "np.ones(2)",
        "op is an int": ("x, op=1", "op type must be str"),
        "unknown op": ("x, op='foo'", _UNKNOWN_OP),
        "avg": ("x, op='avg'", _UNKNOWN_OP),
        "group is an int": "x, group=1",
        "group is None": ("x, group=None", _TEXT),
        "unknown group": ("x, group='nope'", "does not exist"),
        "no argument": ("", "missing 1 required positional"),
    },
    "all_gather_into_tensor": {
        "not a tensor": ("[1]", _TENSOR),
        "group is None": ("x, group=None", _TEXT),
        "unknown group": ("x, group='nope'", "does not exist"),
    },
    "reduce_scatter_tensor": {"not a tensor": ("1", _TENSOR), "group is None": "x, group=None"},
    "reduce": {"not a tensor": "1, 0", "dst is text": "x, 'a'", "no dst": ("x", "missing 1")},
    "gather_into_tensor": {"not a tensor": "1", "dst is text": "x, dst='a'"},
    "scatter_tensor": {"not a tensor": "1", "src is text": ("x, src='a'", "src must be int")},
    "broadcast": {
        "not a tensor": "1",
        "src is text": ("x, src='a'", "src must be int"),
        "src out of range": (f"x, 99, {W}", "99"),
    },
    "barrier": {"group is an int": ("group=1", _TEXT)},
    "send": {"not a tensor": ("1", _TENSOR), "dst is text": "x, 'a'"},
    "recv": {"src is text": ("x, src='a'", "src must be int"), "not a tensor": "1"},
    "isend": {"not a tensor": ("1", _TENSOR)},
    "irecv": {"src is text": "x, src='a'"},
    "all_to_all_with_output_shape": {"tensor for list": ("[(1,)], x", "Expected list or tuple")},
    "P2POp": {
        "op is an int": ("1, x, 0", "op must be type of string or function"),
        "unknown op": ("'foo', x, 0", "isend"),
        "not a tensor": ("'isend', 1, 0", "to be type of tuple or Tensor"),
        "peer is text": ("'isend', x, 'a'", "peer must be type of int"),
        "tag": ("'isend', x, 0, tag=1", "not support yet"),
    },
    "batch_isend_irecv": {
        "tuple": ("()", "must be type of list"),
        "empty": ("[]", "can not be empty list"),
        "no operation": "[1]",
        "no dtype": ("[cf.P2POp('irecv', (1,), 0)]", "recv_dtype"),
    },
}


def _refusals() -> Iterator[list[Asked]]:
    for name, calls in _REFUSED.items():
        yield FUNC.each(name, calls, one(), (1, 2))
    yield FUNC("reduce_scatter_tensor", "indivisible", f"x, group={W}", one((5,)), (1, 2))
    lists, single = "all_to_all_with_output_shape", "all_to_all_single_with_output_shape"
    yield FUNC(lists, "dtypes differ", "[(2, 3)] * 2, [x, y]", _two_dtypes, (2,), "must be the same")
    yield FUNC(single, "shape is a list", "[size], x, group=None", one((5,)), (1, 2))
    yield FUNC(single, "indivisible", "(5,), x, group=None", one((5,)), (2,), "must be divided")


_RANKS: dict[str, Calls] = {
    **{
        name: {
            "unknown group": ("'nope'", "The group nope does not exist"),
            "nccl": ("'nccl_world_group'", "The group nccl_world_group does not exist"),
            "group is an int": ("1", _TEXT),
            "group is None": ("None", _TEXT),
        }
        for name in ("get_rank", "get_group_size")
    },
    "get_comm_name": {"world": ""},
    "get_world_rank_from_group_rank": {
        "world": f"{W}, 0",
        "hccl": ("'hccl_world_group', 0", "does not exist"),
        "out of range": (f"{W}, 99", "99"),
    },
    "get_group_rank_from_world_rank": {
        "world": f"0, {W}",
        "rank is text": (f"'a', {W}", "must be type of int"),
        "out of range": (f"99, {W}", "99"),
    },
    "destroy_group": {"world": (W, "does not support destruction"), "unknown": ("'nope'", "nope")},
    "init": {
        "name is an int": ("1", _TEXT),
        "unknown name": ("'bad'", "must be one of"),
        "twice": "'mccl'",
    },
}


def _ranks() -> Iterator[list[Asked]]:
    text = "[{}, comm.get_group_size(), comm.get_local_rank(), comm.get_local_rank_size()]"
    yield COMM("get_rank", "world", text=text)
    text = f"[{{}}, comm.get_rank({W}), comm.get_group_size({W})]"
    yield COMM("get_rank", "named", "'hccl_world_group'", sizes=(1, 2, 3), text=text)
    text = "[comm.GlobalComm.WORLD_COMM_GROUP, comm.GlobalComm.BACKEND, comm.GlobalComm.INITED]"
    yield COMM("GlobalComm", "after init", sizes=(1, 2, 3), text=text)
    yield COMM("get_process_group_ranks", "world")
    for name, calls in _RANKS.items():
        yield COMM.each(name, calls, sizes=(1, 2, 3))


def _groups() -> Iterator[list[Asked]]:
    end = " if rank < 2 else None; _end = comm.destroy_group('g') if rank < 2 else None; _told"
    told = "[comm.get_rank('g'), comm.get_group_size('g'), comm.get_process_group_ranks('g')]"
    text = "{} if rank < 2 else None; _told = " + told + end
    yield COMM("create_group", "pair", "'g', [0, 1]", sizes=(2, 3, 4), text=text)
    told = "[comm.get_rank('t'), comm.get_process_group_ranks('t'), comm.get_world_rank_from_group_rank('t', 0)]"
    text = "{} if rank < 2 else None; _told = " + told + end.replace("'g'", "'t'")
    yield COMM("create_group", "turned", "'t', [1, 0]", sizes=(2, 3, 4), text=text)
    text = "{} if rank == 0 else None; comm.get_rank('n')"
    yield COMM("create_group", "not a member", "'n', [0]", sizes=(2, 3), text=text)


def _odd_groups() -> Iterator[list[Asked]]:
    refused = {
        "name is an int": ("1, [0, 1]", _TEXT),
        "tuple": ("'gt', (0, 1)", "must be type of list"),
        "empty": ("'ge', []", "size should be greater than 1"),
        "duplicates": ("'gd', [0, 0]", "has duplicate data"),
        "options": ("'go', [0, 1], {}", ""),
    }
    yield COMM.each("create_group", refused, sizes=(2,))
    text, match = "{}; comm.create_group('h', [1, 0])", "has been created"
    yield COMM("create_group", "again, other ranks", "'h', [0, 1]", None, (2,), match, text=text)
    text = "{}; comm.create_group('i', [0, 1])"
    yield COMM("create_group", "again, same ranks", "'i', [0, 1]", sizes=(2,), text=text)
    yield COMM("release", "then get_rank", sizes=(1, 2), text="{}; comm.get_rank()", alone=True)


def _primitives() -> Iterator[list[Asked]]:
    for name in ("AllReduce", "AllGather"):
        for what, shape in SHAPES.items():
            yield OPS(name, what, inputs=one(shape), text="{}(x)")
        for dtype in DTYPES:
            yield OPS(name, dtype, inputs=one((3,), dtype), sizes=(2,), text="{}(x)")
    yield OPS.each("AllReduce", {op: f"'{op}'" for op in ("max", "min", "prod")}, one(), (2,), text="{}(x)")
    for root in range(2):
        yield OPS("Broadcast", f"from {root}", str(root), one(), range(root + 1, 5), text="{}((x,))")
    others = {
        "ReduceScatter": ("", "whole"),
        "Reduce": ("0", "x"),
        "CollectiveScatter": ("0", "whole"),
        "CollectiveGather": ("0", "x"),
        "Barrier": ("", ""),
        "AlltoAll": ("size, 0, 1", "whole"),
    }
    for name, (made_with, given) in others.items():
        yield OPS(name, "all", made_with, _both, (2, 3), text=f"{{}}({given})")
    wrong = {"group is an int": ("'sum', 1", "must be str"), "op is an int": ("1", "must be str")}
    yield OPS.each("AllReduce", wrong, sizes=(1, 2))
    wrong = {"group is an int": ("1", ""), "unknown group": ("'nope'", "does not exist")}
    yield OPS.each("AllGather", wrong, sizes=(1, 2))
    yield OPS("ReduceScatter", "indivisible", "", one((5,)), (2,), "must be divided", text="{}(x)")
    yield OPS("AlltoAll", "wrong count", "9, 0, 1", sizes=(2,))
    yield OPS("AllReduce", "gradient", "", graded(), (1, 2, 3), text="gradient({}, x, dy)")
    yield OPS("Broadcast", "gradient", "0", graded(), (1, 2, 3), text="gradient(lambda x: {}((x,))[0], x, dy)")


_BROADCAST = Sweep(sizes=(1, 2), roots=(1, 2, 3), group=(W,))
CALLS = swept(FUNC, {"broadcast": _BROADCAST}) + joined(
    _comm_func, _refusals, _ranks, _groups, _odd_groups, _primitives
)
