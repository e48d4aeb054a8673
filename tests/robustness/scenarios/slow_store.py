"""A store that answers when the test lets it."""

from __future__ import annotations

import threading

from torch.distributed import Store


class SlowStore(Store):
    """Says nothing to ``check`` until ``goes_on`` is set; ``asked`` are the keys that it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = threading.Event()
        self.asked: list[str] = []

    def check(self, keys: list[str]) -> bool:
        self.asked += keys
        self.goes_on.wait(60)
        return False
