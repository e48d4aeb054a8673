"""What one rank brings to a meeting."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch

from collshim.call import Call
from collshim.layout import Parts
from collshim.transports.alike import Signature


class Seat(Protocol):
    """One rank's part in a meeting; ``signature`` where it came the short way."""

    @property
    def rank(self) -> int:
        """Whose seat it is."""
        ...

    @property
    def device(self) -> torch.device:
        """Where its arrays are."""
        ...

    @property
    def call(self) -> Call:
        """What it asks."""
        ...

    @property
    def inputs(self) -> Parts | None:
        """What it gives."""
        ...

    @property
    def outputs(self) -> Parts | None:
        """Where its result goes; None for fresh memory."""
        ...

    @property
    def stream(self) -> torch.cuda.Stream | None:
        """The CUDA stream that it was taken on."""
        ...

    @property
    def signature(self) -> Signature | None:
        """What the others must have alike."""
        ...


class Brought(NamedTuple):
    """The seat of a rank that came the usual way."""

    rank: int
    call: Call
    inputs: Parts | None
    outputs: Parts | None
    device: torch.device
    stream: torch.cuda.Stream | None
    signature: Signature | None = None
