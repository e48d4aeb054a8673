"""``tf.train.Checkpoint``: saves and restores variables. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import torch

from collshim.errors import ArgumentValueError
from collshim.tensorflow.train import files, trackable
from collshim.tensorflow.train.restoring import CheckpointLoadStatus, InitializationOnlyStatus, Restoration, restore
from collshim.tensorflow.variable import Variable


class CheckpointOptions:
    """Options of saving and restoring; options that would change a file's contents are refused.

    Raises:
        ValueError: an option would leave out variables, call functions or divide files.
    """

    def __init__(
        self,
        experimental_io_device: str | None = None,
        experimental_enable_async_checkpoint: bool = False,
        experimental_write_callbacks: Any = None,
        enable_async: bool = False,
        experimental_skip_slot_variables: bool = False,
        experimental_sharding_callback: Any = None,
    ) -> None:
        refused = {
            "experimental_write_callbacks": experimental_write_callbacks,
            "experimental_skip_slot_variables": experimental_skip_slot_variables,
            "experimental_sharding_callback": experimental_sharding_callback,
        }
        for name, value in refused.items():
            if value:
                raise ArgumentValueError(f"CheckpointOptions: {name} is {value!r}, which is not covered: leave it out")
        self.experimental_io_device = experimental_io_device
        self.enable_async = self.experimental_enable_async_checkpoint = (
            enable_async or experimental_enable_async_checkpoint
        )


class Checkpoint:
    """Objects whose variables are saved and restored together; the objects are attributes of the checkpoint.

    A variable of a strategy is saved once, and restored to all its copies. If a variable is synchronized on read, every
    worker must save, each to its own path; all workers may restore from the same one.

    Args:
        root: an object whose children are saved by their own names.
        kwargs: variables, ``tf.Module``s, objects of ``tf.keras``, checkpoints, or lists, tuples and dicts of them.

    Raises:
        ValueError: an object has any other type.
    """

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        self._root = root
        self._children: dict[str, Any] = {}
        self._restorations: list[Restoration] = []
        if root is not None:
            trackable.require_trackable("Checkpoint", "root", root)
        for name, value in kwargs.items():
            trackable.require_trackable("Checkpoint", name, value)
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name.startswith("_") or isinstance(value, str | int | float | None):
            return
        self._children[name] = value
        for restoration in self._restorations:
            restoration.add(name, value)
            restoration.match()

    def _tracked(self) -> Mapping[str, Any]:
        below = None if self._root is None else trackable.children_of(self._root)
        return {**(below or {}), **self._children}

    @property
    def save_counter(self) -> Any:
        """The number of calls of ``save``: an int64 variable."""
        if "save_counter" not in self._children:
            counter = Variable(0, trainable=False, name="save_counter", dtype=torch.int64)
            self._children["save_counter"] = counter
            for restoration in self._restorations:
                restoration.add("save_counter", counter)
                restoration.match()
        return self._children["save_counter"]

    def write(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Save to ``PREFIX.index`` and ``PREFIX.data-00000-of-00001``; return the prefix."""
        prefix = str(os.fspath(file_prefix))
        files.write(prefix, trackable.graph_of(self._tracked()))
        return prefix

    def save(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Count this call, ``write`` to ``PREFIX-COUNT``, make it the folder's latest checkpoint, and return it."""
        self.save_counter.assign_add(1)
        prefix = self.write(f"{os.fspath(file_prefix)}-{int(self.save_counter)}", options)
        files.write_state(os.path.dirname(prefix), prefix, [prefix])
        return prefix

    def sync(self) -> None:
        """Do nothing: saved checkpoints are already in their files."""

    def read(self, save_path: Any, options: CheckpointOptions | None = None) -> CheckpointLoadStatus:
        """Restore the values that ``write`` saved; variables that are created later are restored then.

        Raises:
            NotFoundError: there is no such checkpoint.
            ValueError: (also DataLossError) the file has a different format, such as TensorFlow's own; or shapes
                differ.
            InvalidArgumentError: dtypes differ.
        """
        restoration = Restoration(files.read(os.fspath(save_path)), self._tracked())
        restore(restoration)
        self._restorations = [one for one in self._restorations if not one.is_over()] + [restoration]
        return CheckpointLoadStatus(restoration)

    def restore(self, save_path: Any, options: CheckpointOptions | None = None) -> Any:
        """Restore the values that ``save`` saved, see ``read``; do nothing if ``save_path`` is None."""
        if save_path is None:
            return InitializationOnlyStatus()
        status = self.read(save_path, options)
        _ = self.save_counter
        return status


trackable.register(Checkpoint, lambda checkpoint: checkpoint._tracked())
