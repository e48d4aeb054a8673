"""``Collator``: combines samples into a batch (source: MegEngine 1.13.0, ``megengine.data.collator``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from collshim.errors import ArgumentTypeError


class Collator:
    """Stacks the samples of a batch; a derived class may combine them differently."""

    def apply(self, inputs: Sequence[Any]) -> Any:
        """Combine samples of the same structure into a batch.

        Returns:
            For arrays and numbers, an array with a new axis 0; for strings and bytes, the samples themselves; for
            mappings, named tuples and sequences, a dictionary, a named tuple or a list of batches.

        Raises:
            TypeError: the samples are of any other type, or are arrays of objects or text.
        """
        first = inputs[0]
        if isinstance(first, str | bytes):
            return inputs
        if isinstance(first, np.ndarray) and first.dtype.kind not in "OSa":
            return np.ascontiguousarray(np.stack(inputs))
        if isinstance(first, np.generic | int):
            return np.array(inputs)
        if isinstance(first, float):
            return np.array(inputs, dtype=np.float64)
        if isinstance(first, Mapping):
            return {key: self.apply([sample[key] for sample in inputs]) for key in first}
        if isinstance(first, tuple) and hasattr(first, "_fields"):
            return type(first)(*(self.apply(fields) for fields in zip(*inputs, strict=True)))
        if isinstance(first, Sequence):
            return [self.apply(parts) for parts in zip(*inputs, strict=False)]
        found = f"an array of {first.dtype}" if isinstance(first, np.ndarray) else type(first)
        raise ArgumentTypeError(
            "default_collator: inputs must contain numpy arrays, numbers, Unicode strings, bytes, dicts or lists; "
            f"found {found}"
        )
