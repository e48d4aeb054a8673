"""Whole files in tensors of strings. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from typing import Any

from collshim.tensorflow.io.gfile import GFile, glob, makedirs
from collshim.tensorflow.string_tensor import StringTensor, string_tensor


def paths_of(names: Any) -> list[str]:
    """Return paths from text, a tensor of text, or a list of either."""
    values: Any = string_tensor(names).numpy()
    return [name.decode() for name in ([values] if isinstance(values, bytes) else values.ravel())]


def read_file(filename: Any, name: str | None = None) -> StringTensor:
    """Return the bytes of a file.

    Raises:
        NotFoundError: there is no such file.
    """
    with GFile(paths_of(filename)[0], "rb") as file:
        return string_tensor(file.read())


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Write bytes to a file, and make its folder."""
    path = paths_of(filename)[0]
    if "/" in path:
        makedirs(path.rpartition("/")[0])
    with GFile(path, "wb") as file:
        file.write(string_tensor(contents).numpy())


def matching_files(pattern: Any, name: str | None = None) -> StringTensor:
    """Return the paths of the files that match a pattern, or one of several, in order."""
    return string_tensor(sorted(glob(paths_of(pattern))))
