"""Datasets whose rows have indices, of ``mindspore.dataset`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

from collshim.adapting.refusing import refuse
from collshim.mindspore.dataset.engine import sources
from collshim.mindspore.dataset.engine.datasets import Dataset
from collshim.mindspore.dataset.engine.samplers import BuiltinSampler

__all__ = ["MappableDataset"]


class MappableDataset(Dataset):
    """A dataset whose rows a sampler chooses."""

    _numbers: list[int] | None = None

    def use_sampler(self, new_sampler: Any) -> None:
        """Replace the sampler; for a part of a dataset, choose among the part's rows.

        Raises:
            TypeError: ``new_sampler`` is not a sampler.
        """
        if new_sampler is None:
            refuse(TypeError, "Input sampler can not be None.")
        if not isinstance(new_sampler, BuiltinSampler):
            refuse(TypeError, "Input sampler is not an instance of a sampler.")
        if isinstance(self._node, sources.Sampled):
            part: BuiltinSampler | None = self._node.sampler
            while part is not None and not part.stays:
                part = part.child_sampler
            if part is not None:
                new_sampler.add_child(part)
            self._node, self._numbers = self._node.with_sampler(new_sampler), None

    def add_sampler(self, new_sampler: Any) -> None:
        """Let another sampler choose among the rows that the present one chooses.

        Raises:
            AttributeError: ``new_sampler`` is not a sampler.
        """
        if not isinstance(new_sampler, BuiltinSampler):
            refuse(AttributeError, f"add_sampler: new_sampler should be a sampler, but got {type(new_sampler)}")
        if isinstance(self._node, sources.Sampled):
            new_sampler.add_child(self._node.sampler)
            self._node, self._numbers = self._node.with_sampler(new_sampler), None
