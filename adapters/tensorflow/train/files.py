"""The files of a checkpoint: ``PREFIX.index``, JSON, and ``PREFIX.data-00000-of-00001``, tensors by ``torch.save``.

The format is collshim's own. A folder's file ``checkpoint`` has TensorFlow's text form, and names the latest one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from collshim.errors import ArgumentValueError, also
from collshim.tensorflow.errors import DataLossError, NotFoundError
from collshim.tensorflow.tensor import dtype_name
from collshim.tensorflow.train.trackable import Graph, value_of

_FORMAT = "collshim.tensorflow checkpoint 1"
_STATE = "checkpoint"


class Saved(NamedTuple):
    """A checkpoint's tensors by their keys, and the further names of objects with several names."""

    tensors: Mapping[str, torch.Tensor]
    aliases: Mapping[str, str]

    def key(self, wanted: str) -> str | None:
        """Return the key under which a variable was saved; None if it was not saved."""
        for _ in range(len(self.aliases) + 1):
            if wanted in self.tensors:
                return wanted
            for alias, name in self.aliases.items():
                if wanted.startswith(f"{alias}/"):
                    wanted = name + wanted[len(alias) :]
                    break
            else:
                return None
        return None


class CheckpointState(NamedTuple):
    """The contents of a folder's file ``checkpoint``: the path of the latest checkpoint, and of all that are kept."""

    model_checkpoint_path: str
    all_model_checkpoint_paths: list[str]


def write(prefix: str, graph: Graph) -> None:
    """Write the values of variables; a reader never finds an incomplete checkpoint."""
    tensors = {key: value_of(variable) for key, variable in graph.variables.items()}
    Path(prefix).parent.mkdir(parents=True, exist_ok=True)
    described = {key: [dtype_name(one.dtype), list(one.shape)] for key, one in tensors.items()}
    index = {"format": _FORMAT, "variables": described, "aliases": graph.aliases}
    parts = [Path(f"{prefix}.data-00000-of-00001"), Path(f"{prefix}.index")]
    unfinished = [part.with_name(f"{part.name}.{os.getpid()}.tmp") for part in parts]
    torch.save(tensors, unfinished[0])
    unfinished[1].write_text(json.dumps(index), encoding="utf-8")
    for new, part in zip(unfinished, parts, strict=True):
        new.replace(part)


def described(prefix: str) -> dict[str, list[Any]]:
    """Return the dtype's name and the shape of each variable in a checkpoint."""
    found: dict[str, list[Any]] = _index(prefix)["variables"]
    return found


def read(prefix: str) -> Saved:
    """Return the contents of a checkpoint.

    Raises:
        NotFoundError: there is no such checkpoint.
        DataLossError: (also a ValueError) the file has a different format, such as TensorFlow's own.
    """
    index = _index(prefix)
    tensors = torch.load(f"{prefix}.data-00000-of-00001", map_location="cpu", weights_only=True)
    return Saved(tensors, index["aliases"])


def _index(prefix: str) -> dict[str, Any]:
    path = Path(f"{prefix}.index")
    if not path.is_file():
        raise NotFoundError(
            None,
            None,
            f"Error when restoring from checkpoint or SavedModel at {prefix}: Unsuccessful TensorSliceReader "
            f"constructor: Failed to find any matching files for {prefix}\nPlease double-check that the path is "
            "correct. You may be missing the checkpoint suffix (e.g. the '-1' in 'path/to/ckpt-1').",
        )
    try:
        index: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        index = {}
    if index.get("format") != _FORMAT:
        raise also(ArgumentValueError, DataLossError)(
            None,
            None,
            f"{path} is not an index of collshim's: only checkpoints that were saved by collshim.tensorflow are read, "
            "not TensorFlow's own; save their values as NumPy arrays there, and assign them here",
        )
    return index


def exists(prefix: str) -> bool:
    """Return whether the checkpoint exists."""
    return Path(f"{prefix}.index").is_file()


def delete(prefix: str) -> None:
    """Delete a checkpoint's files."""
    for end in (".index", ".data-00000-of-00001"):
        Path(f"{prefix}{end}").unlink(missing_ok=True)


def write_state(
    directory: str, latest: str, kept: Sequence[str], times: Sequence[float] = (), since: Any = None
) -> None:
    """Write a folder's file ``checkpoint``; paths inside the folder are written relative to it."""
    lines = [f'model_checkpoint_path: "{_relative(latest, directory)}"']
    lines += [f'all_model_checkpoint_paths: "{_relative(path, directory)}"' for path in kept]
    lines += [f"all_model_checkpoint_timestamps: {time!r}" for time in times]
    lines += [] if since is None else [f"last_preserved_timestamp: {since!r}"]
    path = Path(directory) / _STATE
    unfinished = path.with_name(f"{_STATE}.{os.getpid()}.tmp")
    unfinished.write_text("\n".join(lines) + "\n", encoding="utf-8")
    unfinished.replace(path)


def state(directory: Any, latest_filename: str | None = None) -> CheckpointState | None:
    """Return the contents of a folder's file ``checkpoint``, with full paths; None if there is no such file."""
    path = Path(os.fspath(directory)) / (latest_filename or _STATE)
    if not path.is_file():
        return None
    found = re.findall(r'^(\w+): "(.*)"$', path.read_text(encoding="utf-8"), re.MULTILINE)
    paths = [os.path.join(os.fspath(directory), value) for _, value in found]
    kept = [one for (name, _), one in zip(found, paths, strict=True) if name.startswith("all_")]
    return CheckpointState(paths[0], kept) if paths else None


def timestamps(directory: str) -> list[float]:
    """Return the times at which a folder's kept checkpoints were saved, if a manager saved them."""
    path = Path(directory) / _STATE
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return [float(time) for time in re.findall(r"^all_model_checkpoint_timestamps: (\S+)$", text, re.MULTILINE)]


def latest(directory: Any, latest_filename: str | None = None) -> str | None:
    """Return the prefix of a folder's latest checkpoint; None if there is none."""
    found = state(directory, latest_filename)
    return found.model_checkpoint_path if found is not None and exists(found.model_checkpoint_path) else None


def _relative(path: str, directory: str) -> str:
    return Path(path).name if Path(path).parent == Path(directory) else str(Path(path).absolute())
