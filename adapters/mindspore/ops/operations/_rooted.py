"""Broadcast, Reduce, CollectiveGather, CollectiveScatter. MindSpore 2.10.0. Roots are ranks in the group."""

from __future__ import annotations

from collshim.adapting.refusing import refuse
from collshim.arrays import Array, is_array
from collshim.mindspore.communication import comm_func
from collshim.mindspore.communication.groups import HCCL_WORLD_COMM_GROUP
from collshim.mindspore.ops.operations._arguments import Collective, Reducing, require_type

__all__ = ["Broadcast", "CollectiveGather", "CollectiveScatter", "Reduce"]


class Broadcast(Collective):
    """A primitive that returns the root's tuple of tensors on every rank of ``group``.

    The gradient is the unchanged gradient of the rank's own output.

    Raises:
        TypeError: ``root_rank`` is not an int, or ``group`` not a string; in a call, the input is not a tuple of
            tensors.
        ValueError: in a call, the group has no such rank.
        RuntimeError: this rank has no such group.
    """

    _depends_on_size = False
    _wrong_count = RuntimeError

    def __init__(self, root_rank: int, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        require_type("Broadcast", "root_rank", root_rank, int)
        super().__init__("Broadcast", group)
        self.add_prim_attr("root_rank", root_rank)

    def __call__(self, input_x: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return the root's tensors."""
        if not isinstance(input_x, tuple) or not all(map(is_array, input_x)):
            text = f"the input[0] should be a Tuple of tensors, but got {type(input_x).__name__}"
            refuse(TypeError, f"For primitive[Broadcast], {text}")
        source = self.global_rank(self.attrs["root_rank"])
        return tuple(comm_func.broadcast(tensor, source, self.attrs["group"]) for tensor in input_x)


class Reduce(Reducing):
    """A primitive that returns the reduction on rank ``dest_rank``, and one meaningless element on the other ranks.

    Raises:
        TypeError: ``dest_rank`` is not an int, or ``op`` or ``group`` not a string; in a call, the input is not a
            tensor.
        ValueError: in a call, ``op`` is unknown; the group has no such rank.
        RuntimeError: this rank has no such group.
    """

    _depends_on_size = False

    def __init__(self, dest_rank: int, op: str = "sum", group: str = HCCL_WORLD_COMM_GROUP) -> None:
        require_type("Reduce", "dest_rank", dest_rank, int)
        super().__init__("Reduce", op, group)
        self.add_prim_attr("dest_rank", dest_rank)

    def __call__(self, input_x: Array) -> Array:
        """Return the reduction, or a placeholder of shape ``(1,)``."""
        target = self.global_rank(self.attrs["dest_rank"])
        return comm_func.reduce(input_x, target, self.operation, self.attrs["group"])


class CollectiveGather(Collective):
    """A primitive that returns all tensors, ``(N * x1, ...)``, on rank ``dest_rank``, and a placeholder elsewhere.

    Raises:
        TypeError: ``dest_rank`` is not an int, or ``group`` not a string; in a call, the input is not a tensor.
        ValueError: in a call, the group has no such rank.
        RuntimeError: this rank has no such group.
    """

    def __init__(self, dest_rank: int, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        require_type("CollectiveGather", "dest_rank", dest_rank, int)
        super().__init__("CollectiveGather", group)
        self.add_prim_attr("dest_rank", dest_rank)

    def __call__(self, input_x: Array) -> Array:
        """Return all ranks' tensors, joined, or a placeholder of shape ``(1,)``."""
        return comm_func.gather_into_tensor(input_x, self.global_rank(self.attrs["dest_rank"]), self.attrs["group"])


class CollectiveScatter(Collective):
    """A primitive that returns the r-th part, ``(x1 / N, ...)``, of rank ``src_rank``'s tensor on rank r of ``group``.

    Raises:
        TypeError: ``src_rank`` is not an int, or ``group`` not a string; in a call, the input is not a tensor.
        ValueError: in a call, the group has no such rank; N does not divide ``x1``.
        RuntimeError: this rank has no such group.
    """

    def __init__(self, src_rank: int = 0, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        require_type("CollectiveScatter", "src_rank", src_rank, int)
        super().__init__("CollectiveScatter", group)
        self.add_prim_attr("src_rank", src_rank)

    def __call__(self, input_x: Array) -> Array:
        """Return this rank's part."""
        return comm_func.scatter_tensor(input_x, self.global_rank(self.attrs["src_rank"]), self.attrs["group"])
