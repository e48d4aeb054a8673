"""``mindspore.ops.primitive``: the classes of operations as objects (source: MindSpore 2.10.0)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn

from collshim.adapting.refusing import refuse

__all__ = ["Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "constexpr", "prim_attr_register"]


class Primitive:
    """The base of operations as objects: created once, and then called.

    Args:
        name: the operation's name.

    Attributes:
        attrs: the attributes set by ``add_prim_attr``; they have no effect.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.attrs: dict[str, Any] = {}

    def __repr__(self) -> str:
        attrs = ", ".join(f"{key}={value}" for key, value in self.attrs.items())
        return f"Prim[{self.name}]<{attrs}>"

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """Set an attribute, in ``attrs`` and on the object."""
        self.__dict__[name] = value
        self.attrs[name] = value
        return self

    add_attr = add_prim_attr

    def del_prim_attr(self, name: str) -> Primitive:
        """Delete an attribute, if it exists."""
        self.__dict__.pop(name, None)
        self.attrs.pop(name, None)
        return self

    del_attr = del_prim_attr

    def get_attr_dict(self) -> dict[str, Any]:
        """Return the attributes, by name."""
        return dict(self.attrs)

    def init_prim_io_names(self, inputs: list[str], outputs: list[str]) -> None:
        """Set the names of inputs and outputs as attributes."""
        self.add_prim_attr("input_names", inputs)
        self.add_prim_attr("output_names", outputs)

    def set_prim_instance_name(self, instance_name: str) -> Primitive:
        """Set the name of this instance."""
        self.instance_name = instance_name
        return self

    set_instance_name = set_prim_instance_name

    def set_stage(self, stage: int) -> Primitive:
        """Set the pipeline stage as an attribute, without effect."""
        return self.add_prim_attr("stage", stage)

    def set_device(self, device_target: str) -> Primitive:
        """Set the device as an attribute, without effect: an operation runs on its tensors' device."""
        return self.add_prim_attr("primitive_target", device_target)

    def recompute(self, mode: bool = True) -> Primitive:
        """Set an attribute, without effect: recomputation is not supported."""
        return self.add_prim_attr("recompute", mode)

    def shard(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise NotImplementedError: automatic parallelism is not supported."""
        refuse(NotImplementedError, f"{self.name}.shard: operators are not divided here; call the collectives")

    def place(self, role: str, rank_id: int) -> NoReturn:
        """Raise NotImplementedError: an operation runs on the rank that calls it."""
        refuse(NotImplementedError, f"{self.name}.place: an operation runs on the rank that calls it")

    def check_elim(self, *args: Any) -> tuple[bool, None]:
        """Return ``(False, None)``: no operation is replaced by a constant."""
        return False, None


class PrimitiveWithInfer(Primitive):
    """The same as ``Primitive``."""


class PrimitiveWithCheck(Primitive):
    """The same as ``Primitive``."""


def prim_attr_register(fn: Callable[..., None]) -> Callable[..., None]:
    """Decorate a primitive's ``__init__`` to name it after its class, and to set each argument as an attribute."""
    parameters = inspect.signature(fn)

    @functools.wraps(fn)
    def call(self: Primitive, *args: Any, **kwargs: Any) -> None:
        Primitive.__init__(self, type(self).__name__)
        bound = parameters.bind(self, *args, **kwargs)
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            self.add_prim_attr(name, value)
        fn(self, *args, **kwargs)

    return call


def constexpr(
    fn: Callable[..., Any] | None = None,
    get_instance: bool = True,
    name: str | None = None,
    reuse_result: bool = True,
    check: bool = True,
) -> Any:
    """Return the function itself, or a decorator that does so: nothing is compiled."""
    return (lambda decorated: decorated) if fn is None else fn
