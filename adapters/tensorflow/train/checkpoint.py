"""``tf.train.Checkpoint``: the values of variables in files. Source: TensorFlow 2.21, run eagerly on CPU."""

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
    """Options of saving and restoring: none changes a file, so that those that would are refused.

    Raises:
        ValueError: variables should be left out, functions called, or files divided.
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
    """Objects whose variables are saved and restored together; they become attributes.

    A variable of a strategy is saved once, and restored in all its copies. Between workers every one must save if a
    variable is synchronized when it is read, each to a path of its own; all may restore from one.

    Args:
        root: an object whose children are saved by their own names.
        kwargs: variables, ``tf.Module``s, objects of ``tf.keras``, checkpoints, or lists, tuples and dicts of them.

    Raises:
        ValueError: an object is none of these.
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
        """The number of times that ``save`` was called: a variable, int64."""
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
        """Count this call, and ``write`` to ``PREFIX-COUNT``, which becomes the folder's latest; return it."""
        self.save_counter.assign_add(1)
        prefix = self.write(f"{os.fspath(file_prefix)}-{int(self.save_counter)}", options)
        files.write_state(os.path.dirname(prefix), prefix, [prefix])
        return prefix

    def sync(self) -> None:
        """Do nothing: saved checkpoints are already in their files."""

    def read(self, save_path: Any, options: CheckpointOptions | None = None) -> CheckpointLoadStatus:
        """Restore what ``write`` saved; variables that are made later take their values then.

        Raises:
            NotFoundError: there is no such checkpoint.
            ValueError: (also DataLossError) it has another format, such as TensorFlow's own; or shapes differ.
            InvalidArgumentError: dtypes differ.
        """
        restoration = Restoration(files.read(os.fspath(save_path)), self._tracked())
        restore(restoration)
        self._restorations = [one for one in self._restorations if not one.is_over()] + [restoration]
        return CheckpointLoadStatus(restoration)

    def restore(self, save_path: Any, options: CheckpointOptions | None = None) -> Any:
        """Restore what ``save`` saved, see ``read``; do nothing for None, as ``latest_checkpoint`` may return."""
        if save_path is None:
            return InitializationOnlyStatus()
        status = self.read(save_path, options)
        _ = self.save_counter
        return status


trackable.register(Checkpoint, lambda checkpoint: checkpoint._tracked())
