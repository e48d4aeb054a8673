"""Saving of models: several workers may write at once, and TensorFlow's own formats are refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

from collshim.errors import CollshimError, also
from collshim.tensorflow import summary

_GRAPHS = (
    "exists only in TensorFlow: model.save('NAME.keras') keeps a model, and model.export(..., format='onnx') exports it"
)


def install() -> None:
    """Let workers save models to the same path, and refuse TensorFlow's own formats; call this once."""
    model: Any = import_module("keras.src.models.model").Model
    model.save_weights = _whole(model.save_weights, ".weights.h5")
    model.save = _whole(model.save, ".keras")
    model.export = _exporting(model.export)
    board: Any = import_module("keras.src.callbacks.tensorboard").TensorBoard
    board.summary = property(lambda self: summary, doc="The functions that write: tf.summary.")
    board.__init__ = _of_numbers(board.__init__)
    backup: Any = import_module("keras.src.callbacks.backup_and_restore").BackupAndRestore
    backup.on_train_end = _together(backup.on_train_end)
    files: Any = import_module("keras.src.utils.file_utils")
    files.makedirs = _unless_there(files.makedirs)


def _unless_there(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wrap a function that makes a folder: another worker may have made it meanwhile, as in TensorFlow's function."""

    @wraps(make)
    def call(path: Any) -> Any:
        try:
            return make(path)
        except FileExistsError:
            if not Path(os.fspath(path)).is_dir():
                raise
            return None

    return call


def _together(end: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the deletion of a backup, shared or each worker's own: wait until no worker writes to it any more."""

    @wraps(end)
    def call(self: Any, logs: Any = None) -> None:
        strategy = self.model._distribute_strategy
        communicator = None if strategy is None else strategy.extended._communicator
        if communicator is None:
            end(self, logs)
            return
        communicator.barrier().wait()
        with suppress(FileNotFoundError):  # another worker deletes the same
            end(self, logs)

    return call


def _whole(save: Callable[..., Any], end: str) -> Callable[..., Any]:
    """Let each worker write to a file of its own, which is then renamed, so that readers always find a complete file.

    Every worker takes part, because variables that are synchronized on read are combined over the workers.
    """

    @wraps(save)
    def call(self: Any, filepath: Any, *args: Any, **kwargs: Any) -> Any:
        strategy, path = self._distribute_strategy, Path(os.fspath(filepath))
        if strategy is None or strategy.extended._communicator is None or not path.name.endswith(end):
            return save(self, filepath, *args, **kwargs)
        path.parent.mkdir(parents=True, exist_ok=True)
        own = path.with_name(f"{path.name.removesuffix(end)}.{strategy.extended._communicator.rank}.part{end}")
        try:
            save(self, own, *args, **kwargs)
            own.replace(path)
        finally:
            own.unlink(missing_ok=True)

    return call


def _exporting(export: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(export)
    def call(self: Any, filepath: Any, format: str = "tf_saved_model", *args: Any, **kwargs: Any) -> Any:
        if format in ("tf_saved_model", "tflite", "litert"):
            raise also(CollshimError, NotImplementedError)(f"model.export: the format {format!r} {_GRAPHS}")
        return export(self, filepath, format, *args, **kwargs)

    return call


def _of_numbers(init: Callable[..., Any]) -> Callable[..., Any]:
    """Let the callback TensorBoard write scalars and histograms, and no graph.

    Raises:
        NotImplementedError: images or embeddings are requested.
    """

    @wraps(init)
    def call(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        for name in ("write_images", "embeddings_freq"):
            if getattr(self, name):
                raise also(CollshimError, NotImplementedError)(
                    f"TensorBoard: {name} is {getattr(self, name)!r}, should be left out: only numbers are written here"
                )
        self.write_graph = False

    return call
