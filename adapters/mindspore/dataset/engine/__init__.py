"""``mindspore.dataset.engine``: datasets, samplers, iterators (source: MindSpore 2.10.0)."""

from collshim.mindspore.dataset.engine import datasets, datasets_vision
from collshim.mindspore.dataset.engine.datasets import *  # noqa: F403
from collshim.mindspore.dataset.engine.datasets_user_defined import GeneratorDataset, NumpySlicesDataset
from collshim.mindspore.dataset.engine.datasets_vision import *  # noqa: F403
from collshim.mindspore.dataset.engine.samplers import (
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Shuffle,
    SubsetRandomSampler,
    SubsetSampler,
)

__all__ = [
    "DistributedSampler",
    "GeneratorDataset",
    "NumpySlicesDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Shuffle",
    "SubsetRandomSampler",
    "SubsetSampler",
]
__all__ += datasets.__all__
__all__ += datasets_vision.__all__
