"""``tf.Module``: a container of variables and other modules. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any

from collshim.errors import ArgumentValueError
from collshim.tensorflow import nest, waiting
from collshim.tensorflow.name_scopes import name_scope as naming

_WORDS = re.compile("((?<=[a-z0-9])[A-Z]|(?!^)[A-Z](?=[a-z]))")


class Module:
    """A base class that finds variables and modules in its attributes and nests, in the order of attributes' names.

    Args:
        name: the name of the module's name scope; by default derived from the class's name.

    Raises:
        ValueError: ``name`` is not an identifier.
    """

    def __init__(self, name: str | None = None) -> None:
        found = _WORDS.sub(r"_\1", type(self).__name__).lower() if name is None else name
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", found):
            raise ArgumentValueError(
                f"{found!r} is not a valid module name. Module names must be valid Python identifiers (e.g. a valid "
                "class name)."
            )
        self._name = found
        with naming(found) as scope:
            self._name_scope = naming(scope)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; if restorations wait for new variables, restore those that it holds."""
        super().__setattr__(name, value)
        if waiting.RESTORATIONS and (_is_variable(value) or isinstance(value, Module | Mapping | list | tuple)):
            waiting.restore_new()

    @property
    def name(self) -> str:
        """The name, as passed or derived from the class's name."""
        return self._name

    @property
    def name_scope(self) -> naming:
        """The name scope of the module's variables."""
        return self._name_scope

    @property
    def variables(self) -> tuple[Any, ...]:
        """The module's own variables, followed by those of its submodules."""
        return tuple(self._flatten(predicate=_is_variable))

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """The variables that are trainable."""
        return tuple(variable for variable in self.variables if variable.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Any, ...]:
        """The variables that are not trainable."""
        return tuple(variable for variable in self.variables if not variable.trainable)

    @property
    def submodules(self) -> tuple[Any, ...]:
        """The module's direct submodules, followed by theirs."""
        return tuple(self._flatten(predicate=_is_module))

    def _flatten(
        self,
        recursive: bool = True,
        predicate: Callable[[Any], bool] | None = None,
        attribute_traversal_key: Callable[[str], Any] | None = None,
        with_path: bool = False,
        expand_composites: bool = False,
    ) -> Iterator[Any]:
        """Yield the attributes' contents that ``predicate`` accepts, once each: the module's own, then submodules'."""
        seen, waiting = {id(self)}, [self]
        while waiting:
            for leaf in waiting.pop(0)._held(attribute_traversal_key):
                if id(leaf) in seen:
                    continue
                seen.add(id(leaf))
                if recursive and _is_module(leaf):
                    waiting.append(leaf)
                if predicate is None or predicate(leaf):
                    yield leaf

    def _held(self, key: Callable[[str], Any] | None) -> Iterator[Any]:
        attributes = vars(self)
        for name in sorted(attributes, key=key):
            try:
                yield from nest.flatten(attributes[name])
            except TypeError:  # the keys cannot be sorted: use the mapping's own order
                yield from attributes[name].values()

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a method to run in the module's name scope."""

        @wraps(method)
        def call(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return call


def _is_variable(value: Any) -> bool:
    return hasattr(value, "assign") and hasattr(value, "trainable")


def _is_module(value: Any) -> bool:
    return isinstance(value, Module)
