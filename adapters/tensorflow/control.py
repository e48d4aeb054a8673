"""TensorFlow's functions that control graphs and devices; here, code runs as written, and data does not move.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np
import torch

from collshim.arrays import is_array
from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow import function_variables, structures
from collshim.tensorflow.composites import RaggedTensor, SparseTensor
from collshim.tensorflow.config.logical import LogicalDevice
from collshim.tensorflow.constants import torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.distribute.devices import named
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.indexed_slices import IndexedSlices
from collshim.tensorflow.string_tensor import StringTensor
from collshim.tensorflow.tensor import Tensor, adopt, plain


@contextmanager
def device(device_name: Any) -> Iterator[None]:
    """Name the device of the block, which variables created in it report; data does not move.

    Raises:
        ValueError: no device has such a name.
    """
    if not isinstance(device_name, str | LogicalDevice):
        yield
        return
    with named(device_name):
        yield


@contextmanager
def init_scope() -> Iterator[None]:
    """Create the block's variables as outside of all ``tf.function``s; there are no graphs to leave."""
    with function_variables.outside():
        yield


@contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """Do nothing: the operations have already run."""
    yield


def cond(pred: Any, true_fn: Any = None, false_fn: Any = None, name: str | None = None) -> Any:
    """Return the result of ``true_fn()`` if ``pred`` holds, else of ``false_fn()``.

    Raises:
        TypeError: one of the functions is not callable.
    """
    for role, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(function):
            raise ArgumentTypeError(f"'{role}' must be callable.")
    return true_fn() if bool(pred) else false_fn()


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Sequence[Any],
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> Any:
    """Call ``body`` on ``loop_vars`` while ``cond`` holds, at most ``maximum_iterations`` times; return the result.

    Raises:
        ValueError: ``loop_vars`` is empty.
    """
    values: Any = [_as_tensors(one) for one in loop_vars]
    if not values:
        raise ArgumentValueError("'loop_vars' must be provided.")
    rounds = count() if maximum_iterations is None else range(int(maximum_iterations))
    for _ in rounds:
        if not bool(cond(*values)):
            break
        found = body(*values)
        values = [_as_tensors(one) for one in (found if isinstance(found, list | tuple) else [found])]
    return type(loop_vars)(values)  # type: ignore[call-arg]


def _as_tensors(value: Any) -> Any:
    """Return a nest with tensors in place of numbers and NumPy's arrays."""
    numbers = int | float | complex | np.ndarray | np.generic
    return structures.map_structure(lambda one: convert_to_tensor(one) if isinstance(one, numbers) else one, value)


def group(*inputs: Any, **kwargs: Any) -> None:
    """Do nothing: the inputs have already run."""


def no_op(name: str | None = None) -> None:
    """Do nothing."""


def executing_eagerly() -> bool:
    """Return True: there are no graphs here."""
    return True


def is_tensor(x: Any) -> bool:
    """Return whether ``x`` is a tensor, which includes ragged and sparse ones, variables and slices."""
    return isinstance(x, torch.Tensor | IndexedSlices | RaggedTensor | SparseTensor | StringTensor) or hasattr(
        x, "_as_tensor"
    )


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """Return the values as a NumPy array; None if ``tensor`` is not an array."""
    return convert_to_tensor(tensor).numpy() if is_array(tensor) else None


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """Apply ``fn`` to each row, and return the results stacked; ``elems`` and the results may be nests of tensors.

    Raises:
        ValueError: there is no tensor, or a tensor is a scalar.
    """
    leaves = [convert_to_tensor(one) for one in structures.flatten(elems)]
    if not leaves:
        raise ArgumentValueError(f"elems must be a Tensor or (possibly nested) sequence of Tensors. Got {elems!r}.")
    if not all(leaf.dim() for leaf in leaves):
        raise ArgumentValueError("Elements in elems must be 1+ dimensional Tensors, not scalars")
    found = [fn(structures.pack_sequence_as(elems, row)) for row in zip(*leaves, strict=True)]
    kinds = dtype if fn_output_signature is None else fn_output_signature
    if not found:
        return _without_rows(leaves, elems, kinds)
    columns = zip(*[structures.flatten(row) for row in found], strict=True)
    return structures.pack_sequence_as(found[0], [_stacked(column) for column in columns])


def _without_rows(leaves: list[Tensor], elems: Any, kinds: Any) -> Any:
    """Return empty tensors with the described dtypes, or those of ``elems``; without a call, shapes are not known."""
    if kinds is None:
        return structures.pack_sequence_as(elems, [adopt(torch.zeros(0, dtype=leaf.dtype)) for leaf in leaves])
    return structures.map_structure(
        lambda kind: adopt(torch.zeros(0, dtype=torch_dtype(getattr(kind, "dtype", kind)))), kinds
    )


def _stacked(rows: Sequence[Any]) -> Tensor:
    return adopt(torch.stack([plain(convert_to_tensor(row)) for row in rows]))


def switch_case(
    branch_index: Any,
    branch_fns: Mapping[int, Callable[[], Any]] | Sequence[Callable[[], Any]],
    default: Callable[[], Any] | None = None,
    name: str = "switch_case",
) -> Any:
    """Call the function with the number ``branch_index``; if there is none, ``default`` or the last function."""
    functions = dict(branch_fns) if isinstance(branch_fns, Mapping) else dict(enumerate(branch_fns))
    last = functions[max(functions)] if default is None else default
    return functions.get(int(branch_index), last)()


def case(
    pred_fn_pairs: Sequence[tuple[Any, Callable[[], Any]]],
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """Call the function of the first condition that holds; if none holds, ``default``.

    Raises:
        InvalidArgumentError: no condition holds, and there is no default.
    """
    found = [bool(condition) for condition, _ in pred_fn_pairs]
    if default is None and not any(found):
        raise invalid_argument(f"Input error: None of conditions evaluated as True: {found}")
    functions = [function for holds, (_, function) in zip(found, pred_fn_pairs, strict=True) if holds]
    chosen: Any = functions[0] if functions else default
    return chosen()


def tuple_(tensors: Sequence[Any], control_inputs: Any = None, name: str | None = None) -> list[Any]:
    """Return the tensors in a list."""
    return list(tensors)
