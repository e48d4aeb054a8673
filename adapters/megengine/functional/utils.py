"""``megengine.functional.utils``, where ``topk_accuracy`` is too."""

from __future__ import annotations

from collshim.megengine.functional.metric import topk_accuracy

__all__ = ["topk_accuracy"]
