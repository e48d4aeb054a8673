"""What oneflow.comm is asked."""

from __future__ import annotations

from collshim.conformance.recorder.asked import Asked
from collshim.conformance.recorder.catalogue import oneflow_moves, oneflow_reductions

CALLS: list[Asked] = [*oneflow_reductions.CALLS, *oneflow_moves.CALLS]
