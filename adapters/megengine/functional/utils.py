"""``megengine.functional.utils``, which also has ``topk_accuracy``."""

from __future__ import annotations

from collshim.megengine.functional.metric import topk_accuracy

__all__ = ["topk_accuracy"]
