"""``tf.io.gfile``: files and folders of this machine, over Python's own functions. Source: TensorFlow 2.21."""

from __future__ import annotations

import glob as python_glob
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from collshim.adapting.absent import saying
from collshim.errors import ArgumentTypeError, CollshimError
from collshim.tensorflow.errors import AlreadyExistsError, NotFoundError, PermissionDeniedError, invalid_argument

__all__ = [
    "GFile",
    "copy",
    "exists",
    "glob",
    "isdir",
    "join",
    "listdir",
    "makedirs",
    "mkdir",
    "remove",
    "rename",
    "rmtree",
    "stat",
    "walk",
]
_MODES = ("r", "w", "a", "r+", "w+", "a+")


class GFile:
    """A text file, or a binary file if the mode contains ``b``; it is opened when it is first used.

    Raises:
        InvalidArgumentError: there is no such mode.
        NotFoundError: on the first use, if the file or its folder does not exist.
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        if mode.replace("b", "") not in _MODES:
            raise invalid_argument("mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+'")
        self.name, self.mode = os.fspath(name), mode
        self._file: IO[Any] | None = None

    def _opened(self) -> IO[Any]:
        if self._file is None:
            with _as_tensorflow(self.name):
                self._file = Path(self.name).open(self.mode, encoding=None if "b" in self.mode else "utf-8")  # noqa: SIM115
        return self._file

    def read(self, n: int = -1) -> Any:
        """Return ``n`` characters or bytes; by default, all that are left."""
        return self._opened().read(n)

    def readline(self) -> Any:
        """Return the next line."""
        return self._opened().readline()

    def readlines(self) -> list[Any]:
        """Return all lines that are left."""
        return self._opened().readlines()

    def write(self, file_content: Any) -> None:
        """Write text or bytes."""
        self._opened().write(file_content)

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Move to a different position; ``position`` is the older name of ``offset``.

        Raises:
            TypeError: neither is passed.
        """
        place = position if offset is None else offset
        if place is None:
            raise ArgumentTypeError("seek(): offset argument required")
        self._opened().seek(place, whence)

    def tell(self) -> int:
        """Return the current position."""
        return self._opened().tell()

    def size(self) -> int:
        """Return the size of the file in bytes."""
        with _as_tensorflow(self.name):
            return Path(self.name).stat().st_size

    def flush(self) -> None:
        """Write buffered data to the file."""
        self._opened().flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._opened())


def exists(path: Any) -> bool:
    """Return whether the file or folder exists."""
    return Path(os.fspath(path)).exists()


def isdir(path: Any) -> bool:
    """Return whether the folder exists."""
    return Path(os.fspath(path)).is_dir()


def join(path: Any, *paths: Any) -> str:
    """Return the parts of a path, joined."""
    return os.path.join(os.fspath(path), *map(os.fspath, paths))


def listdir(path: Any) -> list[str]:
    """Return the names in a folder.

    Raises:
        NotFoundError: there is no such folder.
    """
    if not isdir(path):
        raise NotFoundError(None, None, f"Could not find directory {path}")
    return os.listdir(path)


def walk(top: Any, topdown: bool = True, onerror: Any = None) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each folder below ``top``, with the names of its folders and its files."""
    return os.walk(os.fspath(top), topdown, onerror)


def glob(pattern: Any) -> list[str]:
    """Return the paths that match a pattern, or one of several."""
    several = pattern if isinstance(pattern, list | tuple) else [pattern]
    return [path for one in several for path in sorted(python_glob.glob(os.fspath(one)))]


def mkdir(path: Any) -> None:
    """Create a folder; it may exist already.

    Raises:
        NotFoundError: the parent folder does not exist.
    """
    with _as_tensorflow(path):
        Path(os.fspath(path)).mkdir(exist_ok=True)


def makedirs(path: Any) -> None:
    """Create a folder and its parents; they may exist already."""
    with _as_tensorflow(path):
        Path(os.fspath(path)).mkdir(parents=True, exist_ok=True)


def remove(path: Any) -> None:
    """Delete a file.

    Raises:
        NotFoundError: there is no such file.
    """
    with _as_tensorflow(path):
        Path(os.fspath(path)).unlink()


def rmtree(path: Any) -> None:
    """Delete a folder with its contents, or a file.

    Raises:
        NotFoundError: there is no such file or folder.
    """
    if not exists(path):
        raise NotFoundError(None, None, f"{path} not found")
    with _as_tensorflow(path):
        shutil.rmtree(path) if isdir(path) else Path(os.fspath(path)).unlink()


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copy a file.

    Raises:
        AlreadyExistsError: there is a file at ``dst``, and ``overwrite`` is False.
        NotFoundError: there is no file at ``src``.
    """
    _require_free(dst, overwrite)
    with _as_tensorflow(src):
        shutil.copyfile(src, dst)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Move a file.

    Raises:
        AlreadyExistsError: there is a file at ``dst``, and ``overwrite`` is False.
        NotFoundError: there is no file at ``src``.
    """
    _require_free(dst, overwrite)
    with _as_tensorflow(src):
        Path(os.fspath(src)).replace(dst)


class FileStatistics(NamedTuple):
    """The result of ``stat``."""

    length: int
    mtime_nsec: int
    is_directory: bool


def stat(path: Any) -> FileStatistics:
    """Return the size of a file, the time of its last change in nanoseconds, and whether it is a folder.

    Raises:
        NotFoundError: there is no such file.
    """
    with _as_tensorflow(path):
        found = os.stat(path)
    return FileStatistics(found.st_size, found.st_mtime_ns, isdir(path))


def _require_free(path: Any, overwrite: bool) -> None:
    if not overwrite and exists(path):
        raise AlreadyExistsError(None, None, f"{path}: file already exists")


@contextmanager
def _as_tensorflow(path: Any) -> Iterator[None]:
    """Convert the operating system's errors to TensorFlow's."""
    try:
        yield
    except FileNotFoundError as error:
        raise _error(NotFoundError, path, error) from error
    except FileExistsError as error:
        raise _error(AlreadyExistsError, path, error) from error
    except PermissionError as error:
        raise _error(PermissionDeniedError, path, error) from error


def _error(kind: Any, path: Any, error: OSError) -> CollshimError:
    found: CollshimError = kind(None, None, f"{path}; {error.strerror}")
    return found


__getattr__ = saying(__name__, "Python's os, pathlib and shutil have the rest")
