"""The short way of a group of one rank: nobody need be waited for, a call is over when it is posted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from collshim.arrays import FromTorch
from collshim.transports.alike import REDUCED
from collshim.transports.plain import Asker, kind_of_fresh, plain, plain_parts, plain_target
from collshim.work import Work

if TYPE_CHECKING:
    from collshim.transports.switchboard import LocalGroup


class Over(Work[Any]):
    """A work that is over from the start."""

    _settled = True

    def __init__(self, raw: Any, kind: FromTorch | None = None) -> None:
        self._raw = raw
        self._kind = kind
        self._result = raw if kind is None else kind(raw)


class AloneExpress:
    """See ``Express``."""

    queue = ()

    def __init__(self, group: LocalGroup, unseen: Sequence[Any]) -> None:
        self.unseen = unseen
        self._group = group

    def all_reduce(self, asker: Asker, array: Any, op: Any, out: Any) -> Work[Any] | None:
        """See ``Express.all_reduce``."""
        return self._kept(array, out) if type(op) is str and op in REDUCED else None

    def broadcast(self, asker: Asker, array: Any, root: Any, out: Any) -> Work[Any] | None:
        """See ``Express.broadcast``."""
        return self._kept(array, out) if type(root) is int and root == 0 else None

    def all_gather(self, asker: Asker, array: Any, out: Any) -> Work[Any] | None:
        """See ``Express.all_gather``."""
        tensor = plain(array)
        return None if tensor is None else self._copied(array, tensor, out, (1, *tensor.shape))

    def reduce_scatter(self, asker: Asker, parts: Any, op: Any, out: Any) -> Work[Any] | None:
        """See ``Express.reduce_scatter``."""
        tensor = plain_parts(parts, 1) if type(op) is str and op in REDUCED else None
        return None if tensor is None else self._copied(parts, tensor, out, tensor.shape[1:])

    def all_to_all(self, asker: Asker, parts: Any, out: Any) -> Work[Any] | None:
        """See ``Express.all_to_all``."""
        tensor = plain_parts(parts, 1)
        return None if tensor is None else self._copied(parts, tensor, out, tensor.shape)

    def _kept(self, array: Any, out: Any) -> Work[Any] | None:
        """The result is the input; in place it lies where it should."""
        tensor = plain(array)
        if tensor is None or out is not array:
            return None if tensor is None else self._copied(array, tensor, out, tensor.shape)
        return Over(out) if self._group.broken is None else None

    def _copied(self, array: Any, tensor: Tensor, out: Any, shape: tuple[int, ...]) -> Work[Any] | None:
        target = tensor.new_empty(shape) if out is None else plain_target(array, tensor, out, shape)
        if target is None or self._group.broken is not None:
            return None
        target.copy_(tensor if target.shape == tensor.shape else tensor.view(shape))
        return Over(target, kind_of_fresh(array)) if out is None else Over(out)
