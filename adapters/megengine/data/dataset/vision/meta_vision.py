"""``VisionDataset`` (source: MegEngine 1.13.0, ``megengine.data.dataset.vision.meta_vision``)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from collshim.errors import ArgumentError, ArgumentValueError, also
from collshim.megengine.data.dataset.meta_dataset import Dataset


class VisionDataset(Dataset):
    """The base class of image datasets.

    Args:
        root: the folder of the files; ``~`` is expanded.
        order: the names of a sample's parts, in order; ``("image",)`` for None. ValueError if it is not a sequence.
        supported_order: the names that ``order`` may contain; any for None. NotImplementedError for other names.
    """

    def __init__(
        self, root: Any, *, order: Sequence[str] | None = None, supported_order: Sequence[str] | None = None
    ) -> None:
        self.root = os.path.expanduser(root) if isinstance(root, str | bytes) else root
        self.order = ("image",) if order is None else order
        if not isinstance(self.order, Sequence):
            raise ArgumentValueError(f"order should be a sequence, but got order={order}")
        for name in self.order:
            if supported_order is not None and name not in supported_order:
                raise also(ArgumentError, NotImplementedError)(f"{name} is unsupported data type")

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


def folder_of(dataset: VisionDataset, root: str | None) -> Path:
    """Return the folder of a dataset's files: ``root``, or MegEngine's folder in the user's cache if it is None."""
    if root is not None:
        return Path(root)
    return Path(os.getenv("XDG_CACHE_HOME", "~/.cache")).expanduser() / "megengine" / type(dataset).__name__


def no_download(dataset: VisionDataset, folder: Path, names: Sequence[str], download: bool) -> Exception:
    """Return the error for missing files: a RuntimeError if ``download``, and otherwise a ValueError."""
    text = f"{type(dataset).__name__}: {folder} lacks {', '.join(names)}"
    if download:
        return also(ArgumentError, RuntimeError)(
            f"{text}: collshim.megengine downloads no datasets: copy the files there, or let MegEngine download them"
        )
    return ArgumentValueError(f"{text}: copy the files there")
