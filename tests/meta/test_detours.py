"""Adapters whose functions convert numbers through another dtype, or lose a kind of number on the way."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial, wraps
from typing import Any

import pytest
import torch
from torch import Tensor

from collshim.conformance.bindings import bindings, find
from collshim.conformance.bindings.admits import DIFFERENTIATED
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.messages import Messages
from collshim.conformance.bindings.objects import OfObjects
from collshim.conformance.bindings.rank_context import resolve
from collshim.conformance.bindings.spelling import BUFFERS, IN_PLACE, Spelling
from collshim.conformance.cases import OBJECTS, Case
from collshim.conformance.comparison import differences
from collshim.conformance.corners import corners
from collshim.conformance.pool import Pool
from collshim.conformance.values import REDUCTIONS
from collshim.frameworks import FRAMEWORKS

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated.*:FutureWarning")

Detour = Callable[[Tensor], Tensor]


def through(dtype: torch.dtype, tensor: Tensor) -> Tensor:
    return tensor.to(dtype).to(tensor.dtype)


def clipped(least: int, greatest: int, tensor: Tensor) -> Tensor:
    return tensor.clamp(least, greatest)


def without_the_sign_of_zero(tensor: Tensor) -> Tensor:
    return tensor + 0


def flushed(tensor: Tensor) -> Tensor:
    return torch.where(tensor.abs() < torch.finfo(tensor.dtype).tiny, torch.zeros_like(tensor), tensor)


def finite(tensor: Tensor) -> Tensor:
    return tensor.nan_to_num()


SPECIAL: dict[str, Detour] = {"no -0": without_the_sign_of_zero, "flushed": flushed, "finite": finite}
DETOURS: dict[str, dict[str, Detour]] = {
    "float64": {"float32": partial(through, torch.float32), "float16": partial(through, torch.float16)},
    "float32": {"float16": partial(through, torch.float16), "bfloat16": partial(through, torch.bfloat16)},
    "float16": {"bfloat16": partial(through, torch.bfloat16)},
    "bfloat16": {"float16": partial(through, torch.float16)},
    "complex128": {"complex64": partial(through, torch.complex64)},
    "int64": {
        "float64": partial(through, torch.float64),
        "int32": partial(through, torch.int32),
        "clipped to 2**53": partial(clipped, -(2**53), 2**53),
        "clipped to int32": partial(clipped, -(2**31), 2**31 - 1),
    },
    "int32": {"float32": partial(through, torch.float32)},
    "int8": {"without a sign": partial(clipped, 0, 127)},
    "uint8": {"clipped to int8": partial(clipped, 0, 127)},
}
for _floating in ("float64", "float32", "float16", "bfloat16"):
    DETOURS[_floating] |= SPECIAL


def take_detour(tree: Any, dtype: torch.dtype, detour: Detour) -> Any:
    """Return ``tree`` with its tensors of a dtype taken through the detour, in memory of their own."""
    if isinstance(tree, list | tuple):
        return type(tree)(take_detour(item, dtype, detour) for item in tree)
    if isinstance(tree, dict):
        return {key: take_detour(value, dtype, detour) for key, value in tree.items()}
    return detour(tree) if isinstance(tree, Tensor) and tree.dtype == dtype else tree


def rewrite(tree: Any, dtype: torch.dtype, detour: Detour) -> None:
    """Do the same in place."""
    for tensor in tree if isinstance(tree, list) else [tree]:
        if isinstance(tensor, Tensor) and tensor.dtype == dtype:
            tensor.copy_(detour(tensor))


def is_left_alone(binding: Binding, name: str) -> bool:
    """Return whether the function only writes a parameter, or uses it freely."""
    if isinstance(binding, Spelling):
        return binding.takes.get(name) in BUFFERS or (name == binding.result and binding.collective not in IN_PLACE)
    return isinstance(binding, OfObjects) and "list to fill" in binding.takes.get(name, "")


def faulty(binding: Binding, dtype: torch.dtype, detour: Detour) -> Any:
    """Return the function of a binding, or the sending one of two, with its arguments taken through the detour."""
    function = resolve(f"collshim.{faulted(binding)}")
    if "P2POp" in faulted(binding):
        return partial(_operation, function, dtype, detour)
    if isinstance(function, type):
        return lambda **options: _taking(binding, function(**options), dtype, detour)
    return _taking(binding, function, dtype, detour)


def _operation(
    made: Any, dtype: torch.dtype, detour: Detour, send: Any, tensor: Tensor, *more: Any, **group: Any
) -> Any:
    is_send = send == "isend" or getattr(send, "__name__", "") == "isend"
    return made(send, take_detour(tensor, dtype, detour) if is_send else tensor, *more, **group)


def _taking(binding: Binding, function: Any, dtype: torch.dtype, detour: Detour) -> Any:
    signature = inspect.signature(function)

    @wraps(function)
    def call(*positional: Any, **keywords: Any) -> Any:
        bound = signature.bind(*positional, **keywords)
        for name, value in bound.arguments.items():
            if name == binding.result and binding.collective in IN_PLACE:
                rewrite(value, dtype, detour)
            elif binding.collective == "broadcast_object" and name == binding.result:
                value[:] = take_detour(value, dtype, detour)
            elif not is_left_alone(binding, name):
                bound.arguments[name] = take_detour(value, dtype, detour)
        return function(*bound.args, **bound.kwargs)

    return call


def faulted(binding: Binding) -> str:
    """Return the path of the function that takes a rank's input."""
    if not isinstance(binding, Messages):
        return binding.path
    return binding.home + ("P2POp" if "batch" in binding.path else binding.sends.name)


def detours_of(binding: Binding) -> Iterator[tuple[str, str, Detour]]:
    only_adds = binding.collective in REDUCTIONS and set(binding.admits.reduce_ops) <= {"sum", "avg"}
    for dtype, several in DETOURS.items():
        for name, detour in several.items() if dtype in binding.admits.dtypes else ():
            is_admitted = (only_adds and detour is without_the_sign_of_zero) or (binding.flushes and detour is flushed)
            if not is_admitted:
                yield dtype, name, detour


def is_detected(binding: Binding, changes: dict[str, Any], cases: Sequence[Case]) -> bool:
    """Return whether one of the cases differs, with these functions in the adapter, by path."""
    with pytest.MonkeyPatch.context() as patch:
        for path, function in changes.items():
            home, _, name = path.rpartition(".")
            patch.setattr(resolve(f"collshim.{home}"), name, function)
        pool = Pool("threads", 2)
        try:
            return any(_differs(binding, case, pool.run([binding] * 2, case)) for case in cases)
        finally:
            pool.close()


def _differs(binding: Binding, case: Case, answers: Sequence[Any]) -> bool:
    """Return whether a value differs; different memory does not count."""
    found = [one for rank, answer in enumerate(answers) for one in differences(binding, case, rank, answer)]
    return any(" at [" in what for what, _, _ in found)


def cases_of(binding: Binding, dtype: str) -> list[Case]:
    """Return the suite's plain cases of a dtype."""
    return [
        case
        for case in corners(binding, 2)
        if case.dtype == dtype and case.kind == "torch" and case.shape == (2, 3) and not case.gradient
        if case.family == "exact"
    ]


OF_ARRAYS = [one for one in bindings() if one.collective not in ("barrier", *OBJECTS)]
OF_OBJECTS = [one for one in bindings() if one.collective in OBJECTS]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_detours_of_each_function_are_detected(framework: str) -> None:
    survivors = []
    for binding in [one for one in OF_ARRAYS if one.framework.name == framework]:
        for dtype, name, detour in detours_of(binding):
            changes = {faulted(binding): faulty(binding, getattr(torch, dtype), detour)}
            if not is_detected(binding, changes, cases_of(binding, dtype)):
                survivors.append(f"{binding.name}: {dtype}, {name}")
    assert survivors == []


@pytest.mark.parametrize("binding", OF_OBJECTS, ids=lambda binding: binding.name)
def test_detours_of_tensors_in_objects_are_detected(binding: Binding) -> None:
    for dtype, several in DETOURS.items():
        for name, detour in several.items():
            changes = {faulted(binding): faulty(binding, getattr(torch, dtype), detour)}
            assert is_detected(binding, changes, corners(binding, 2)), (dtype, name)


class _RoundedBack(torch.autograd.Function):
    """An identity whose gradient is rounded to half its width."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (gradient,) = gradients
        return through(torch.float32 if gradient.dtype == torch.float64 else torch.bfloat16, gradient)


@pytest.mark.parametrize("framework", ["torch", "mindspore", "tensorflow", "megengine"])
def test_rounded_gradients_are_detected(framework: str) -> None:
    survivors = []
    able = [one for one in OF_ARRAYS if one.framework.name == framework and one.admits.gradient]
    assert able
    for binding in able:
        for dtype in DIFFERENTIATED if DIFFERENTIATED[-1] in binding.admits.dtypes else DIFFERENTIATED[:1]:
            changes = {faulted(binding): faulty(binding, getattr(torch, dtype), _RoundedBack.apply)}
            cases = [one for one in corners(binding, 2) if one.gradient and one.dtype == dtype]
            assert not is_detected(binding, changes, cases_of(binding, dtype)), "it is told of the forward"
            if not is_detected(binding, changes, cases):
                survivors.append(f"{binding.name}: {dtype}")
    assert survivors == []


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_functions_that_only_copy_agree(framework: str) -> None:
    told = []
    for binding in [one for one in (*OF_ARRAYS, *OF_OBJECTS) if one.framework.name == framework]:
        changes = {faulted(binding): faulty(binding, torch.float64, torch.clone)}
        if is_detected(binding, changes, cases_of(binding, "float64") or corners(binding, 2)[:1]):
            told.append(binding.name)
    assert told == []


COMPUTED = [
    *[(op, "float64", torch.float32) for op in ("sum", "avg", "prod", "min", "max")],
    *[(op, "float32", torch.bfloat16) for op in ("sum", "avg", "prod", "min", "max")],
    *[(op, "float16", torch.bfloat16) for op in ("sum", "avg", "prod", "min", "max")],
    *[(op, "bfloat16", torch.float16) for op in ("sum", "avg", "prod", "min", "max")],
    *[(op, "int64", torch.float64) for op in ("sum", "avg", "prod", "min", "max")],
    *[(op, "int32", torch.float32) for op in ("sum", "avg", "prod", "min", "max")],
    *[(op, "complex128", torch.complex64) for op in ("sum", "avg")],
    *[(op, "uint8", torch.int8) for op in ("avg", "min", "max")],
    *[(op, "int8", torch.uint8) for op in ("avg", "min", "max")],
]


@pytest.mark.parametrize(("op", "dtype", "other"), COMPUTED)
@pytest.mark.parametrize("collective", ["all_reduce", "reduce", "reduce_scatter"])
def test_reduction_in_another_dtype_is_detected(collective: str, op: str, dtype: str, other: torch.dtype) -> None:
    binding = find(f"torch.distributed.{collective}")
    plain = resolve(f"collshim.{binding.path}")

    def computed(tensor: Tensor, *more: Any, **group: Any) -> None:
        result = tensor.to(other)
        plain(result, *([part.to(other) for part in one] if isinstance(one, list) else one for one in more), **group)
        tensor.copy_(result)

    case = Case(collective, dtype=dtype, reduce_op=op, seed=1)
    assert case in corners(binding, 2)
    assert is_detected(binding, {binding.path: computed}, [case])


@pytest.mark.parametrize("op", ["prod", "min", "band", "bxor"])
@pytest.mark.parametrize("collective", ["all_reduce", "reduce"])
def test_sums_of_booleans_are_detected(collective: str, op: str) -> None:
    binding = find(f"torch.distributed.{collective}")
    plain = resolve(f"collshim.{binding.path}")

    def added(tensor: Tensor, op: Any, **keywords: Any) -> None:
        counts = tensor.to(torch.int32)
        plain(counts, **keywords)
        tensor.copy_(counts)

    assert is_detected(binding, {binding.path: added}, [Case(collective, dtype="bool", reduce_op=op, seed=1)])
