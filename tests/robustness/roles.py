"""The roles of arguments, and the possible mistakes in each."""

from __future__ import annotations

import torch
from hypothesis import strategies as st

from collshim.conformance.reference import BITWISE
from collshim.mindspore.communication import comm_func
from collshim.torch.distributed import ReduceOp
from tests.robustness.context import SIZE
from tests.robustness.faults import (
    A_TUPLE,
    COUNTS,
    ENTRY_NO_ARRAY,
    ENTRY_OF_OTHER_DTYPE,
    LESS_LENGTH,
    NO_ARRAY,
    NO_ARRAY_NOR_SHAPE,
    NO_INTS,
    NO_LIST,
    NO_OPTIONAL_ARRAY,
    NOT_TO_GO_THROUGH,
    NOTHING,
    NUMBERS,
    OTHER_DTYPE,
    OTHER_LENGTH,
    OTHER_LENGTH_BUT_0,
    OTHER_SHAPE,
    OUTSIDE,
    SPLITS,
    UNDIVIDED,
    UNREADABLE_ARRAY,
    UNWRITABLE_ARRAY,
    UNWRITABLE_INPUT,
    WORDS,
    Fault,
    changed,
    in_an_entry,
    one_of,
    unsupported,
    value,
    zeros,
)
from tests.robustness.unsupported import NO_LEAVES, NO_WAY_BACK

_READ = (*NO_ARRAY, UNREADABLE_ARRAY)
_WRITTEN = (*NO_OPTIONAL_ARRAY, UNREADABLE_ARRAY, UNWRITABLE_ARRAY)
_OUT = (*_WRITTEN, OTHER_SHAPE, OTHER_DTYPE)
_ARRAYS = {
    "array": _READ,
    "array given back": (*_READ, unsupported("type", NO_WAY_BACK)),
    "array of whole": (*_READ, OTHER_SHAPE),
    "array to divide": (*_READ, UNDIVIDED),
    "stacked parts": (*_READ, OTHER_SHAPE),
    "inout": (*_READ, UNWRITABLE_INPUT),
    "written": _WRITTEN,
    "written but None": (*_WRITTEN, NOTHING),
    "rebound": (*NO_ARRAY, OTHER_SHAPE, unsupported("memory", ["a read-only array", "a broadcast array"])),
    "optional out": _OUT,
    "out": (*_OUT, NOTHING),
    "P2POp's tensor": (*NO_ARRAY_NOR_SHAPE, UNREADABLE_ARRAY),
}

_LIST = (*NO_LIST, OTHER_LENGTH)
_ENTRIES = (*ENTRY_NO_ARRAY, ENTRY_OF_OTHER_DTYPE)
_LISTS = {
    "list of parts": (*_LIST, NOTHING, *_ENTRIES),
    "exact list of parts": (*_LIST, NOTHING, A_TUPLE, *_ENTRIES),
    "exact list of equal parts": (*_LIST, NOTHING, A_TUPLE, *_ENTRIES, in_an_entry(OTHER_SHAPE)),
    "optional list of outs": (*_LIST, *_ENTRIES, in_an_entry(UNWRITABLE_ARRAY)),
    "list of outs": (*_LIST, NOTHING, *_ENTRIES, in_an_entry(UNWRITABLE_ARRAY)),
    "longer list of outs": (*NO_LIST, LESS_LENGTH, NOTHING, *_ENTRIES, in_an_entry(UNWRITABLE_ARRAY)),
    "exact list of outs": (*_LIST, NOTHING, A_TUPLE, *_ENTRIES, in_an_entry(UNWRITABLE_ARRAY)),
    "exact list of places": (*_LIST, NOTHING, A_TUPLE, *ENTRY_NO_ARRAY, in_an_entry(UNWRITABLE_ARRAY)),
    "filled list": (*_LIST, NOTHING, A_TUPLE),
    "optional filled list": (*_LIST, A_TUPLE),
    "list to overwrite": (NOT_TO_GO_THROUGH, in_an_entry(NO_ARRAY[0]), in_an_entry(UNWRITABLE_ARRAY)),
    "counts": COUNTS,
}

_RANK = (value("rank", OUTSIDE), value("type", NO_INTS))
_MEMBERS = (
    Fault("rank", OUTSIDE, lambda context, good, rank: [*good[:-1], rank]),
    Fault("rank", st.integers(0, SIZE - 1), lambda context, good, rank: [*good, rank]),
    value(
        "type", st.lists(st.sampled_from(["0", 0.5, None, b"1"]), min_size=1, max_size=SIZE), st.integers(), st.floats()
    ),
)
_RANKS = {
    "rank": (*_RANK, NOTHING),
    "optional rank": _RANK,
    "engine's rank": (*_RANK, NOTHING, one_of("type", True, False)),
    "engine's optional rank": (*_RANK, one_of("type", True, False)),
    "rank of another": (*_RANK, NOTHING, changed("rank", lambda context, good: context.ranks[context.rank])),
    "ranks": (*_MEMBERS, NOTHING),
    "optional ranks": _MEMBERS,
    "tag": (value("type", NO_INTS), NOTHING, value("rank", st.integers(-9, -1), st.integers(2**30))),
    "P2POp's tag": (value("type", NO_INTS), value("op", st.integers(1, 9))),
}

_DESTROYED = changed("group", lambda context, good: context.destroyed)
_NO_GROUP = value(
    "group",
    st.integers().filter(lambda number: number != -100),  # torch's name for a group without this rank
    st.text(max_size=3),
    st.lists(st.integers(0, 2), max_size=3),
)
_GROUPS = {
    "communicator": (_DESTROYED,),
    "optional group": (_DESTROYED, _NO_GROUP, unsupported("group", ["an object", "a dict"])),
    "group": (_DESTROYED, _NO_GROUP, NOTHING),
    "new name": (value("type", NUMBERS, st.none()), one_of("group", "turned")),
    "backend": (one_of("op", "nowhere", "gl oo"), value("type", st.integers(1, 9))),
    "nothing": (value("type", NUMBERS),),
    "timedelta": (value("type", NUMBERS, WORDS),),
}

_NO_NAME = value("type", NUMBERS, st.none())
_BITS = one_of("op", *BITWISE)
_WORD = one_of("op", "mean ", "", "premul_sum", "add", "max ")
_OPS = {
    "engine's op": (_WORD, _BITS, _NO_NAME, value("type", st.binary(max_size=2), st.lists(st.text(max_size=3)))),
    "MindSpore's op": (_WORD, _BITS, _NO_NAME, one_of("op", "avg")),
    "mint's op": (_WORD, _BITS, _NO_NAME),
    "TensorFlow's op": (_WORD, _BITS, _NO_NAME, value("type", st.lists(st.text(max_size=3)))),
    "ReduceOp": (
        value("type", NUMBERS, WORDS, st.none(), st.just("sum")),
        Fault("op", st.sampled_from(["BAND", "BOR", "BXOR", "PREMUL_SUM"]), lambda h, g, name: getattr(ReduceOp, name)),
    ),
    "reduce method": (one_of("op", "max", "", "avg"), _NO_NAME),
    "mode": (one_of("op", "all_gather", "", "SUM"), _NO_NAME),
    "operations": (
        value("type", st.integers(), st.text(max_size=3), st.just([]), st.lists(st.integers(), min_size=1)),
        changed("type", lambda h, good: (comm_func.P2POp("isend", h.own(), h.ranks[h.after]),)),
    ),
}

_NO_NEST = (
    value("type", WORDS, st.lists(WORDS, min_size=1, max_size=2)),
    unsupported("type", (*NO_LEAVES, "a sparse tensor", "a quantized tensor")),
    unsupported("dtype", ["strings", "objects", "dates", "long doubles", "records"]),
)
_NO_AXES = changed("shape", lambda context, good: zeros(context, ()))


def _of_dtype(*names: str) -> Fault:
    return Fault("dtype", st.sampled_from(names), lambda h, g, name: torch.ones(2, 2).to(getattr(torch, name)))


_NESTS = {
    "nest": _NO_NEST,
    "nest to reduce": (*_NO_NEST, _of_dtype("uint8", "bool", "complex64", "int8")),
    "nest of arrays with axes": (*_NO_NEST, _NO_AXES),
    "nest to gather": (*_NO_NEST, _of_dtype("uint8", "bool", "complex64", "bfloat16"), _NO_AXES),
    "array to sum along an axis": _NO_NEST[:1],
    "options": (value("type", NUMBERS, WORDS, st.lists(st.integers())),),
    "args of run": (value("type", NUMBERS, WORDS, st.none()),),
    "destinations": (value("type", NUMBERS, st.none(), st.just(""), st.lists(st.text(max_size=3), max_size=2)),),
    "outside": (one_of("state", "outside"),),
    "inside": (one_of("state", "inside"),),
}

_LENGTHS = st.lists(st.integers(1, 6))
_PLACES = {
    "axis": (value("type", NO_INTS), value("axis", st.integers(2, 99), st.integers(-99, -1)), NOTHING),
    "axis to sum along": (value("type", NO_INTS), value("axis", st.integers(2, 99), st.integers(-99, -3))),
    "MegEngine's device": (
        one_of("op", "nowhere", "xpu", "gpu-1", "tpu0", "", "cpu0:", "gpu99", "cuda77"),
        value("type", st.integers(), st.binary(max_size=2)),
    ),
    "device": (one_of("op", "nowhere", "cpu:y", ""),),
    "dtype": (value("type", st.integers(), st.text(max_size=3)), NOTHING),
    "shape": (
        value("shape", st.tuples(st.integers(-9, -1), st.just(2))),
        value("type", st.integers(), st.text(min_size=1, max_size=3)),
        NOTHING,
    ),
    "whole shape": (one_of("shape", (), (7, 2), (-6, 2), (6, -2)), value("type", NUMBERS, st.none(), _LENGTHS)),
    "shapes": (
        OTHER_LENGTH_BUT_0,
        NO_LIST[0],
        in_an_entry(value("type", NUMBERS, st.text(max_size=3), st.none(), _LENGTHS)),
        in_an_entry(one_of("shape", (-2, 2))),
    ),
}

_SPELLED = {
    "root": _RANKS["rank"],
    "optional root": _RANKS["optional rank"],
    "root in the group": _RANKS["rank"],
    "axis to cut": _PLACES["axis"],
    "buffer": _ARRAYS["out"],
    "list of buffers": _LISTS["list of outs"],
    "size of the group": (value("type", NO_INTS), value("shape", st.integers(-9, 99).filter(lambda n: n != SIZE))),
    **dict.fromkeys(("rows from each", "rows to each"), SPLITS),
    **dict.fromkeys(("axis of either sign", "axis to cut, of either sign"), _PLACES["axis to sum along"]),
    **dict.fromkeys(("optional rows from each", "optional rows to each"), SPLITS),
}
"""Roles that the suite's spellings distinguish."""

ROLES: dict[str, tuple[Fault, ...]] = _ARRAYS | _LISTS | _RANKS | _GROUPS | _OPS | _NESTS | _PLACES | _SPELLED
