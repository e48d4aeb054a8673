"""Descriptions of datasets' elements, a ``TensorSpec`` for each component. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch

from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow.constants import constant
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.data.structure import components, map_components
from collshim.tensorflow.data_types import STRING, DType
from collshim.tensorflow.errors import InvalidArgumentError, invalid_argument
from collshim.tensorflow.specs import TensorSpec, spec_of
from collshim.tensorflow.string_tensor import empty_strings
from collshim.tensorflow.tensor import adopt, plain


def first(elements: Iterable[Any]) -> Any:
    """Return the description of the first element.

    Raises:
        ValueError: there are no elements.
    """
    for element in elements:
        return map_components(spec_of, element)
    raise ArgumentValueError("element_spec: the dataset has no element, from which it would be known")


def batched(element_spec: Any, size: int | None) -> Any:
    """Return the description of batches; ``size`` is None if the length may vary."""
    return map_components(lambda spec: spec.reshaped([size, *spec.shape]), element_spec)


def unbatched(element_spec: Any) -> Any:
    """Return the description of slices along axis 0."""
    return map_components(lambda spec: spec.reshaped(spec.shape[1:]), element_spec)


def mapped(source: Any, made: Iterable[Any], compute: Callable[[Any], Any]) -> Any:
    """Return the description of the elements ``made``, which a function computes from those of ``source``.

    The first element describes all, except for axis 0: if the length of ``source``'s batches may vary, and the result
    has as many rows, its length may vary too.
    """
    of_first = next((map_components(spec_of, element) for element in made), None)
    if of_first is None:  # there are no elements: what the function returns for zeros tells
        return map_components(spec_of, compute(map_components(_zeros, source.element_spec)))
    shapes = [spec.shape for spec in components(source.element_spec)]
    if not any(shape.rank and shape[0] is None for shape in shapes):
        return of_first
    rows = {part.shape[0] for element in source.take(1) for part in components(element) if part.dim()}
    return map_components(lambda spec: _loosened(spec, rows), of_first)


def _zeros(spec: TensorSpec) -> Any:
    if spec.dtype is STRING:
        return empty_strings(length or 0 for length in spec.shape)
    return adopt(torch.zeros([length or 0 for length in spec.shape], dtype=spec.dtype))


def _loosened(spec: TensorSpec, rows: set[int]) -> TensorSpec:
    if not spec.shape.rank or spec.shape[0] not in rows:
        return spec
    return spec.reshaped([None, *spec.shape[1:]])


def signature(types: Any, shapes: Any, given: Any) -> Any:
    """Return the description of a generator's elements.

    Raises:
        TypeError: there is neither a type nor a signature.
    """
    if given is not None:
        return map_components(lambda spec: spec, given)
    if types is None:
        raise ArgumentTypeError(
            "To specify the output signature you need to provide either the `output_signature` argument or the "
            "`output_types` argument."
        )
    if shapes is None:
        return map_components(lambda dtype: TensorSpec(None, dtype), types)
    if isinstance(types, tuple):
        return tuple(signature(dtype, shape, None) for dtype, shape in zip(types, shapes, strict=True))
    if isinstance(types, dict):
        return {key: signature(types[key], shapes[key], None) for key in types}
    return TensorSpec(shapes, types)


def fitted(element: Any, element_spec: Any) -> Any:
    """Return a generator's element with tensors of the described dtypes.

    Raises:
        InvalidArgumentError: the element has a different structure or shape.
    """
    if isinstance(element_spec, TensorSpec):
        return _tensor(element, element_spec)
    whole = tuple(element) if isinstance(element, list) else element
    try:
        return map_components(lambda spec, part: _tensor(part, spec), element_spec, whole)
    except InvalidArgumentError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise invalid_argument(
            f"`generator` yielded an element that did not match the expected structure. The expected structure was "
            f"{element_spec}, but the yielded element was {element}."
        ) from error


def _tensor(value: Any, spec: TensorSpec) -> Any:
    found = constant(value, STRING) if spec.dtype is STRING else _numbers(value, spec)
    if not spec.shape.is_compatible_with(found.shape):
        raise invalid_argument(
            f"`generator` yielded an element of shape {found.shape} where an element of shape {spec.shape} was "
            "expected."
        )
    return found if spec.dtype is STRING else adopt(plain(found).to(spec.dtype))


def _numbers(value: Any, spec: TensorSpec) -> Any:
    kind = None if spec.dtype is torch.bfloat16 else DType(spec.dtype).as_numpy_dtype
    return convert_to_tensor(value if isinstance(value, torch.Tensor) else np.asarray(value, kind))
