"""``mindspore.ops.primitive``: what an operation is made with, as an object (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any, NoReturn

from collshim.adapting.refusing import refuse

__all__ = ["Primitive", "PrimitiveWithInfer"]


class Primitive:
    """An operation that is made once and called often.

    Args:
        name: what it is called.

    Attributes:
        attrs: what ``add_prim_attr`` has set; it changes no result.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.instance_name = name
        self.attrs: dict[str, Any] = {}

    def __repr__(self) -> str:
        attrs = ", ".join(f"{key}={value}" for key, value in self.attrs.items())
        return f"Prim[{self.name}]<{attrs}>"

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """The attribute has this value, in ``attrs`` and as an attribute of the object."""
        self.__dict__[name] = value
        self.attrs[name] = value
        return self

    add_attr = add_prim_attr

    def del_prim_attr(self, name: str) -> Primitive:
        """The attribute is gone, if it was there."""
        self.__dict__.pop(name, None)
        self.attrs.pop(name, None)
        return self

    del_attr = del_prim_attr

    def get_attr_dict(self) -> dict[str, Any]:
        """The attributes, by name."""
        return dict(self.attrs)

    def init_prim_io_names(self, inputs: list[str], outputs: list[str]) -> None:
        """The names of inputs and outputs are attributes."""
        self.add_prim_attr("input_names", inputs)
        self.add_prim_attr("output_names", outputs)

    def set_prim_instance_name(self, instance_name: str) -> Primitive:
        """This one of several is called so."""
        self.instance_name = instance_name
        return self

    set_instance_name = set_prim_instance_name

    def set_stage(self, stage: int) -> Primitive:
        """An attribute: the stage of a pipeline."""
        return self.add_prim_attr("stage", stage)

    def set_device(self, device_target: str) -> Primitive:
        """An attribute: tensors choose where an operation runs."""
        return self.add_prim_attr("primitive_target", device_target)

    def recompute(self, mode: bool = True) -> Primitive:
        """An attribute: nothing is computed again."""
        return self.add_prim_attr("recompute", mode)

    def shard(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: a strategy belongs to automatic parallel."""
        refuse(NotImplementedError, f"{self.name}.shard: operators are not divided here; call the collectives")

    def place(self, role: str, rank_id: int) -> NoReturn:
        """Refused: an operation runs on the rank that calls it."""
        refuse(NotImplementedError, f"{self.name}.place: an operation runs on the rank that calls it")

    def check_elim(self, *args: Any) -> tuple[bool, None]:
        """No operation is replaced by a constant."""
        return False, None


class PrimitiveWithInfer(Primitive):
    """As ``Primitive``."""
