"""``tf.Variable``: a tensor that can be assigned; with several replicas in this process, each has a copy.

An assignment replaces the tensor: values read before do not change. Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
import torch

from collshim.adapting.devices import tell_of_cpu
from collshim.errors import ArgumentTypeError, ArgumentValueError, CollshimError, also
from collshim.tensorflow import function_variables, gradient_tape, name_scopes, waiting
from collshim.tensorflow.constants import is_of_strings, torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.distribute import context, devices
from collshim.tensorflow.errors import checked, invalid_argument
from collshim.tensorflow.indexing import select
from collshim.tensorflow.operators import Operators
from collshim.tensorflow.scattering import Rows
from collshim.tensorflow.string_tensor import holds_text
from collshim.tensorflow.tensor import Reference, Tensor, adopt, dtype_name, plain
from collshim.tensorflow.tensor_shape import TensorShape
from collshim.tensorflow.variable_creators import create_with_all
from collshim.tensorflow.variable_modes import VariableAggregation, VariableSynchronization, require_modes


class _Creation(type):
    """A metaclass through which the enclosing creator scopes and the strategy create the variable."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is not Variable:
            return type.__call__(cls, *args, **kwargs)
        given = signature(Variable.__init__).bind(None, *args, **kwargs)
        given.apply_defaults()
        arguments = {name: value for name, value in given.arguments.items() if name != "self"}
        found = create_with_all(_create, arguments, context.get_strategy().extended._create_variable)
        function_variables.record(found)
        if waiting.RESTORATIONS:
            _await_restoration(found)
        return found

    def __instancecheck__(cls, instance: Any) -> bool:
        """Return True for distributed variables too: they count as ``tf.Variable``s."""
        return super().__instancecheck__(instance) or (
            cls is Variable and bool(getattr(type(instance), "_is_distributed_variable", False))
        )


def _create(**arguments: Any) -> Any:
    """Return a new variable of one replica; its name gets the prefix of its scopes, unless it ends with ``/``."""
    name, scope = arguments["name"], name_scopes.current()
    if name and name.endswith("/"):
        arguments["name"] = name.removesuffix("/")
    elif scope:
        arguments["name"] = f"{scope}{name or 'Variable'}"
    return type.__call__(Variable, **arguments)


def _await_restoration(variable: Any) -> None:
    """Let restorations set the value of a new variable before it is used for the first time."""
    for own in getattr(variable, "values", (variable,)):
        if isinstance(own, Variable) and "_value" in vars(own):
            vars(own)["_initial"] = vars(own).pop("_value")


def _no_in_place(sign: str, instead: str) -> Callable[[Any, Any], Any]:
    def refuse(self: Any, value: Any) -> Any:
        raise also(CollshimError, RuntimeError)(
            f"`variable {sign} value` with `tf.Variable`s is not supported. Use {instead}"
        )

    return refuse


class Variable(Operators, Rows, metaclass=_Creation):
    """A tensor that can be assigned.

    Args:
        initial_value: a value for ``tf.convert_to_tensor``, or a function that returns one.
        trainable: whether tapes watch the variable when it is read; by default True, except for ON_READ.
        name: the name, without the suffix ``:0`` and the prefix of ``tf.name_scope``; the attribute has both.
        dtype: the dtype to convert the value to.
        synchronization: see ``tf.VariableSynchronization``.
        aggregation: see ``tf.VariableAggregation``.
        constraint: a function for optimizers, which is stored as an attribute.
        shape: the shape of the initial and all assigned values, with None for lengths that may change.
        validate_shape: without effect, like the arguments not listed here.

    Raises:
        ValueError: ``initial_value`` is missing or has a different shape, or a mode is unknown.
    """

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: str | None = None,
        constraint: Callable[[Any], Any] | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        shape: Any = None,
        experimental_enable_variable_lifting: bool = True,
    ) -> None:
        tell_of_cpu("tensorflow")
        extended = context.get_strategy().extended
        is_copied = extended._makes_variables and not extended._shares_variables
        require_modes(synchronization, aggregation, name, is_copied)
        if initial_value is None:
            raise ArgumentValueError("The `initial_value` arg to `tf.Variable` must be specified, and is None.")
        on_read = synchronization is VariableSynchronization.ON_READ
        self._container: Any = self
        self._strategy = context.get_strategy()
        self._device = devices.current()
        self.trainable = (not on_read) if trainable is None else bool(trainable)
        self._name, self._synchronization, self._aggregation = name or "Variable", synchronization, aggregation
        self.constraint = constraint
        value = initial_value() if callable(initial_value) else initial_value
        if holds_text(value) or is_of_strings(dtype):
            raise ArgumentTypeError(
                f"initial_value is {value!r}, should be numbers: variables of tf.string do not exist"
            )
        self._value = _leaf(convert_to_tensor(value, dtype))
        self._shape = TensorShape(self._value.shape if shape is None else shape)
        self._shape.assert_is_compatible_with(TensorShape(self._value.shape))

    def __getattr__(self, name: str) -> Any:
        """Return the value at its first use, if restorations waited for this variable; see ``_await_restoration``."""
        if name != "_value" or "_initial" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._value = vars(self).pop("_initial")
        waiting.restore_new()
        return self._value

    @property
    def name(self) -> str:
        """The name, with ``:0``."""
        return f"{self._name}:0"

    @property
    def shape(self) -> TensorShape:
        """The lengths of the axes, as far as ``shape`` defines them."""
        return self._shape

    @property
    def dtype(self) -> torch.dtype:
        """The dtype."""
        return self._value.dtype

    @property
    def initial_value(self) -> Any:
        """Refuse to tell, as TensorFlow does outside of graphs.

        Raises:
            RuntimeError: always.
        """
        raise also(CollshimError, RuntimeError)(
            "initial_value is not supported when eager execution is enabled: keep the value that you passed"
        )

    @property
    def initializer(self) -> None:
        """None: the variable has its value from the start."""
        return None

    def is_initialized(self, name: str | None = None) -> Tensor:
        """Return True."""
        return convert_to_tensor(True)

    @property
    def synchronization(self) -> VariableSynchronization:
        """When the variable's copies are synchronized."""
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        """How the values that several replicas write are combined."""
        return self._aggregation

    @property
    def device(self) -> str:
        """The name of the replica's device, or of the ``tf.device`` in which it was created; by default a CPU's."""
        return self._device

    def value(self) -> Tensor:
        """Return the value, with a gradient if a tape is open."""
        return adopt(gradient_tape.read(self, self._value))

    read_value = value

    def _as_tensor(self) -> Tensor:
        return self.value()

    def __getitem__(self, index: Any) -> Any:
        """Return a part of the value; its method ``assign`` sets this part of the variable."""
        part = self.value()[index]
        part.assign = partial(self._assign_part, index)
        return part

    @checked
    def _assign_part(self, index: Any, value: Any, name: str | None = None) -> Any:
        def change(own: torch.Tensor) -> torch.Tensor:
            places = select(torch.arange(own.numel()).reshape(own.shape), index)
            part = _convert(value, self.dtype).broadcast_to(places.shape)
            return own.reshape(-1).index_put((places.reshape(-1),), part.reshape(-1)).reshape(own.shape)

        return self._rewrite(change)

    def numpy(self) -> Any:
        """Return the value as a NumPy array."""
        return adopt(self._value.detach()).numpy()

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Set the value, and return the variable; None if ``read_value`` is False.

        Raises:
            ValueError: the value has a different shape.
        """
        return _read(self._rewrite(lambda _: _convert(value, self.dtype)), read_value)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Add to the value, and return the variable; InvalidArgumentError if ``delta`` has a different shape."""
        return _read(self._rewrite(lambda own: own + _fitting(own, _convert(delta, self.dtype))), read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtract from the value, and return the variable; InvalidArgumentError if ``delta`` has a different shape."""
        return _read(self._rewrite(lambda own: own - _fitting(own, _convert(delta, self.dtype))), read_value)

    def _rewrite(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Variable:
        with torch.no_grad():
            found = change(self._value.detach())
        if not self._shape.is_compatible_with(found.shape):
            raise ArgumentValueError(
                f"Cannot assign value to variable ' {self.name}': Shape mismatch.The variable shape {self.shape}, and "
                f"the assigned value shape {TensorShape(found.shape)} are incompatible."
            )
        self._value = _leaf(found)
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Return a variable of the same strategy, with a copy of the value."""
        found = memo[id(self)] = copy(self)
        found._container, found._value = found, _leaf(self._value)
        return found

    __iadd__ = _no_in_place("+=", "`variable.assign_add(value)`")
    __isub__ = _no_in_place("-=", "`variable.assign_sub(value)`")
    __imul__ = _no_in_place("*=", "`variable.assign(variable * value)`")
    __itruediv__ = __idiv__ = _no_in_place("/=", "`variable.assign(variable / value)`")
    __ipow__ = _no_in_place("**=", "`variable.assign(variable ** value)`")

    def ref(self) -> Reference:
        """Return a hashable reference to this variable."""
        return Reference(self)

    experimental_ref = ref

    def get_shape(self) -> TensorShape:
        """Return ``shape``."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Do nothing if the variable may have this shape; raise ValueError otherwise."""
        self.shape.assert_is_compatible_with(shape)

    def __repr__(self) -> str:
        numbers = repr(adopt(self._value.detach())).rpartition("numpy=")[2].removesuffix(">")
        kind = dtype_name(self.dtype)
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={kind}, numpy={numbers}>"


def _fitting(own: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
    if own.shape != delta.shape:
        raise invalid_argument(
            f"Cannot update variable with shape {list(own.shape)} using a Tensor with shape {list(delta.shape)}, "
            "shapes must be equal."
        )
    return delta


def _read(variable: Variable, read_value: bool) -> Variable | None:
    return variable if read_value else None


def _leaf(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy that is a leaf of the autograd graph."""
    value: torch.Tensor = plain(tensor).detach().clone()
    return value.requires_grad_(value.is_floating_point() or value.is_complex())


def _convert(value: Any, dtype: torch.dtype) -> torch.Tensor:
    own = hasattr(value, "dtype") and not isinstance(value, np.ndarray | np.generic)
    found: torch.Tensor = plain(convert_to_tensor(value, None if own else dtype))
    if found.dtype is not torch_dtype(dtype):
        raise ArgumentValueError(
            f"Tensor conversion requested dtype {dtype_name(dtype)} for Tensor with dtype {dtype_name(found.dtype)}"
        )
    return found
