"""``Together``: several works as one."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from collshim.arrays import Arrays
from collshim.work import Work


class Together(Work[list[Arrays]]):
    """Several works as one, whose result is the list of theirs."""

    def __init__(self, works: Sequence[Work[Arrays]]) -> None:
        super().__init__()
        self._works = works

    def _wait_again(self, timeout: float | None) -> None:
        """See ``Work``: a call on CUDA may fail after its wait."""
        if self._failure is None:
            for work in self._works:
                work.wait(timeout)

    def _complete(self, timeout: float | None) -> list[Arrays]:
        """Wait for every work, and return all results; raise the first failure, if there is one."""
        limit = math.inf if timeout is None else time.monotonic() + timeout
        results, failures, earlier = list[Arrays](), list[Exception](), list[Exception]()
        for work in self._works:
            rest = None if timeout is None else max(0.0, limit - time.monotonic())
            try:
                results.append(work.wait(rest))
            except Exception as failure:
                if work.keeps(failure):
                    failures.append(failure)
                else:
                    earlier.append(failure)
                    results.append(work.wait(rest))  # which gives its own result now
        if failures:
            raise failures[0]
        if earlier:
            self._failure, self._raises_once = earlier[0], True
        return results

    def _is_over(self) -> bool:
        return all(work.done() for work in self._works)
