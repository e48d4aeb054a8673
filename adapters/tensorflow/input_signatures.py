"""Checks arguments against the ``input_signature`` of a ``tf.function``. Source: TensorFlow 2.21, run eagerly."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from collshim.errors import ArgumentTypeError
from collshim.tensorflow import structures
from collshim.tensorflow.constants import constant
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.distribute.values import DistributedValues
from collshim.tensorflow.specs import PerReplicaSpec, TensorSpec, spec_of


def bound(
    function: Callable[..., Any], specs: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """Return the arguments in order, with numbers and lists converted to tensors of the described dtypes.

    Raises:
        TypeError: there are too few arguments, or one does not match its description.
    """
    try:
        found = signature(function).bind(*args, **kwargs)
        given = found.args
    except TypeError as error:
        raise _refused(str(error), specs, args, kwargs) from error
    return tuple(_fitted(spec, value, specs, args, kwargs) for spec, value in zip(specs, given, strict=False)) + tuple(
        given[len(specs) :]
    )


def _fitted(spec: Any, value: Any, *call: Any) -> Any:
    if isinstance(spec, TensorSpec):
        return _tensor(spec, value, *call)
    if isinstance(spec, PerReplicaSpec):
        parts = value.values if isinstance(value, DistributedValues) else ()
        if len(parts) != len(spec.value_specs):
            raise _refused(f"Can not cast {_named(value)} to {spec!r}", *call)
        for one, part in zip(spec.value_specs, parts, strict=True):
            _fitted(one, part, *call)
        return value
    if not structures.is_nested(spec):
        return value
    described, leaves = structures.flatten(spec), structures.flatten(value)
    if len(described) != len(leaves):
        raise _refused(f"Can not cast {value!r} to {spec!r}", *call)
    fitted = [_fitted(one, leaf, *call) for one, leaf in zip(described, leaves, strict=True)]
    return structures.pack_sequence_as(value, fitted)


def _tensor(spec: TensorSpec, value: Any, *call: Any) -> Any:
    if isinstance(value, DistributedValues) and not hasattr(value, "_as_tensor"):
        raise _refused(f"Can not cast {_named(value)} to {spec!r}", *call)
    own = hasattr(value, "dtype")
    tensor = convert_to_tensor(value) if own else constant(value, spec.dtype)
    if tensor.dtype is not spec.dtype or not spec.shape.is_compatible_with(tensor.shape):
        raise _refused(f"Can not cast {TensorSpec.from_tensor(tensor)!r} to {spec!r}", *call)
    return tensor


def _named(value: Any) -> str:
    return repr(spec_of(value)) if isinstance(value, DistributedValues) else repr(value)


def _refused(reason: str, specs: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"Binding inputs to tf.function failed due to `{reason}`. Received args: {args} and kwargs: {kwargs} for "
        f"signature: {specs}."
    )
