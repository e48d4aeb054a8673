"""The NaN finder: which elements of what a rank gives are not a number (``options(find_nan=True)``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from collshim.errors import ArgumentValueError, refusal
from collshim.layout import Parts
from collshim.options import chosen, get

if TYPE_CHECKING:
    from collshim.communicator import Communicator


class NanFinder:
    """One communicator's finder; on where a block of options, or the environment when it was made, says so."""

    def __init__(self, communicator: Communicator) -> None:
        self._communicator = communicator
        self._by_default = get().find_nan

    def is_on(self) -> bool:
        """Whether to look."""
        block = chosen()
        return self._by_default if block is None else block.find_nan

    def look(self, given: Parts) -> str:
        """What is to be told of what is given to a reduction; empty where nothing was found, or nobody asked."""
        if not self.is_on():
            return ""
        comm = self._communicator
        if not comm.checks:
            raise ArgumentValueError(refusal("find_nan", "the check between ranks", "off", "on", comm.rank, comm.size))
        return nan_in(given)


def nan_in(parts: Parts) -> str:
    """How many elements are NaN and where the first one is; empty where none is."""
    if isinstance(parts, Tensor):
        return _told(parts, "its input")
    found = [_told(part, f"input[{rank}]") for rank, part in enumerate(parts)]
    return "; ".join(text for text in found if text)


def _told(tensor: Tensor, what: str) -> str:
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return ""
    places = torch.isnan(tensor if tensor.itemsize > 1 else tensor.float())
    count = int(places.sum())
    if count == 0:
        return ""
    first = tuple(torch.nonzero(places)[0].tolist())
    return f"{count} of {tensor.numel()} elements of {what}, the first at {first}"
