"""Finds the variables of an object, by the path of names to each. Source: TensorFlow 2.21, ``tf.train.Checkpoint``."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from collshim.errors import ArgumentValueError
from collshim.tensorflow.distribute.values import DistributedValues
from collshim.tensorflow.distributed_variables import SyncOnReadVariable
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.module import Module
from collshim.tensorflow.random_generators import Generator
from collshim.tensorflow.tensor import dtype_name, plain
from collshim.tensorflow.tensor_shape import TensorShape
from collshim.tensorflow.variable_modes import VariableAggregation

VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"

# For each class of objects, the function that returns their children by name.
_CHILDREN: dict[type, Callable[[Any], Mapping[str, Any]]] = {}


class Graph(NamedTuple):
    """The variables of a root object by their keys, and the further names of objects with several names."""

    variables: dict[str, Any]
    aliases: dict[str, str]


def register(kind: type, children: Callable[[Any], Mapping[str, Any]]) -> None:
    """Let objects of a class be tracked; ``children`` returns the objects that one holds, by name."""
    _CHILDREN[kind] = children


def require_trackable(owner: str, name: str, value: Any) -> None:
    """Refuse a value that holds no variables.

    Raises:
        ValueError: ``value`` holds no variables; the text shows the name and the value.
    """
    if not is_variable(value) and children_of(value) is None:
        raise ArgumentValueError(
            f"`{owner}` was expecting {name} to be a trackable object (an object derived from `Trackable`), got "
            f"{value}. It should be a variable, a tf.Module, a tf.random.Generator, an object of tf.keras, a "
            "Checkpoint, or a list, tuple or dict of these"
        )


def is_variable(value: Any) -> bool:
    """Return whether a value is a variable, Keras's or TensorFlow's."""
    return hasattr(value, "assign") and hasattr(value, "_as_tensor")


def graph_of(children: Mapping[str, Any]) -> Graph:
    """Return the variables of a root with these children; if an object has several names, the shortest is used."""
    found = Graph({}, {})
    seen: dict[int, tuple[str, Any]] = {}  # with the objects, to keep temporary lists of children alive
    waiting = deque((name, child) for name, child in children.items())
    while waiting:
        path, node = waiting.popleft()
        if id(node) in seen:
            found.aliases[path] = seen[id(node)][0]
            continue
        below = None if is_variable(node) else children_of(node)
        if below is None and not is_variable(node):
            continue
        seen[id(node)] = path, node
        if below is None and getattr(node, "_held", node) is not None:  # Keras may make a variable's value later
            found.variables[path + VALUE] = node
        waiting.extend((f"{path}/{name}", child) for name, child in (below or {}).items())
    return found


def children_of(node: Any) -> Mapping[str, Any] | None:
    """Return the objects that an object holds, by name; None if it is not tracked."""
    for kind, children in _CHILDREN.items():
        if isinstance(node, kind):
            return children(node)
    if isinstance(node, Mapping):
        return {str(key): child for key, child in node.items()}
    if isinstance(node, list | tuple):
        return {str(place): child for place, child in enumerate(node)}
    return None


register(Generator, lambda generator: {"_state_var": generator.state})
register(Module, lambda module: {name: vars(module)[name] for name in sorted(vars(module))})


def value_of(variable: Any) -> Any:
    """Return a variable's value; if replicas write their own copies, the combined value, for which all must call."""
    held = getattr(variable, "_held", variable)
    return plain(held.value()).detach().cpu().contiguous()


def assign(variable: Any, key: str, value: Any) -> None:
    """Set every copy of a variable in this process to a value, whatever the caller's context.

    Raises:
        ValueError: the shapes differ.
        InvalidArgumentError: the dtypes differ.
    """
    held = getattr(variable, "_held", variable)
    copies = held.values if isinstance(held, DistributedValues) else (held,)
    if not TensorShape(copies[0].shape).is_compatible_with(value.shape):
        raise ArgumentValueError(
            f"Received incompatible tensor with shape {TensorShape(value.shape)} when attempting to restore variable "
            f"with shape {TensorShape(copies[0].shape)} and name {variable.name}."
        )
    if copies[0].dtype != value.dtype:
        raise invalid_argument(
            f"tensor_name = {key}; expected dtype {dtype_name(copies[0].dtype)} does not equal original dtype "
            f"{dtype_name(value.dtype)}"
        )
    if isinstance(held, SyncOnReadVariable) and held.aggregation is VariableAggregation.SUM:
        value = (value / held.distribute_strategy.num_replicas_in_sync).to(value.dtype)
    for copy in copies:
        copy.assign(value)
