"""A message between threads: an exchange of two ranks."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from collshim.calls.agreement import objection_to_pair
from collshim.calls.call import Call
from collshim.errors import CommunicationError
from collshim.transports.threads.exchange import Exchange


class MessageExchange(Exchange):
    """An exchange with a send at the first index, and the matching recv at the second."""

    def _objection(self, calls: Sequence[Call]) -> CommunicationError | None:
        return objection_to_pair(calls[0], calls[1], self.group.ranks)

    def _compute(self, calls: Sequence[Call], rank: int) -> None:
        send, recv = self.arrivals
        if self.outputs[1] is None:
            device = send.plan.device if calls[1].device == "any" else recv.plan.device
            self.outputs[1] = torch.empty(calls[0].shape or (), dtype=calls[0].dtype, device=device)
        self.source = send.rank
        self.inputs[0] = self.inputs[0].reshape(self.outputs[1].shape)
        self.outputs[1].copy_(self.inputs[0])
        if self.stream_order is not None:
            self.stream_order.finish()
        self._finish()
