"""Barriers: no rank leaves before every rank has entered."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from collshim.conformance.bindings.answers import Answer, Handle, Tree, waited
from collshim.conformance.bindings.arguments import Asker, values_by_name
from collshim.conformance.bindings.binding import Binding, place_in
from collshim.conformance.bindings.rank_context import RankContext

APART_SECONDS = 0.002  # between the ranks' calls, so that a rank that does not wait leaves first


@dataclass(frozen=True, kw_only=True)
class Barrier(Binding):
    """``barrier()``; the times at which ranks enter and leave are compared, since all read one machine's clock.

    Attributes:
        takes: the parameter for the group, with its role, if there is one.
        done: the value that a handle's ``wait()`` returns, if the options ask for a handle.
        made: whether the function returns the object to call, as MindSpore's primitives do.
    """

    collective: str = "barrier"
    takes: Mapping[str, str] = field(default_factory=lambda: {"group": "optional group"})
    done: Tree = None
    made: bool = False

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Make the call after a delay that grows with the rank, and record the times."""
        function = context.function(self.path)
        rank = place_in(case, context)
        time.sleep(APART_SECONDS * rank)
        came = time.monotonic()
        passed = values_by_name(self.takes, Asker(context, self.framework, case, rank, group))
        found = function(**passed, **self.options)
        returned = waited(found() if self.made else found)
        return Answer(returned, stay=(came, time.monotonic()))

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """Expect None, or a handle."""
        return Answer(Handle(self.done) if self.options.get("async_op") else None)
