"""``megengine.data``: the parts that MegEngine's tutorials on distributed training use (source: MegEngine 1.13.0)."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.megengine.data import dataset, transform
from collshim.megengine.data.collator import Collator
from collshim.megengine.data.dataloader import DataLoader
from collshim.megengine.data.sampler import (
    Infinite,
    MapSampler,
    RandomSampler,
    ReplacementSampler,
    Sampler,
    SequentialSampler,
    StreamSampler,
)

__all__ = [
    "Collator",
    "DataLoader",
    "Infinite",
    "MapSampler",
    "RandomSampler",
    "ReplacementSampler",
    "Sampler",
    "SequentialSampler",
    "StreamSampler",
    "dataset",
    "transform",
]

__getattr__ = saying(__name__)
