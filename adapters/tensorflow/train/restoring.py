"""Restores a checkpoint: existing variables at once, and other variables once they are created.

Source: TensorFlow 2.21, the objects that ``tf.train.Checkpoint.restore`` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from weakref import ref

from collshim.errors import ArgumentError, also
from collshim.tensorflow.train import trackable
from collshim.tensorflow.train.files import Saved
from collshim.tensorflow.waiting import RESTORATIONS


class Restoration:
    """A checkpoint's values, and the objects whose variables are restored; it does not keep the objects alive."""

    def __init__(self, saved: Saved, children: Mapping[str, Any]) -> None:
        self.saved = saved
        self._children: dict[str, Callable[[], Any]] = {}
        self.taken: dict[str, str] = {}  # the keys of restored variables, each with the key of its value
        self._restored: dict[str, Callable[[], Any]] = {}  # the variables themselves, by their keys
        for name, child in children.items():
            self.add(name, child)

    def add(self, name: str, child: Any) -> None:
        """Add a further object whose variables are restored."""
        try:
            self._children[name] = ref(child)
        except TypeError:  # lists and dicts
            self._children[name] = lambda: child

    def variables(self) -> dict[str, Any]:
        """Return the variables that exist now."""
        there = {name: child() for name, child in self._children.items()}
        return trackable.graph_of({name: child for name, child in there.items() if child is not None}).variables

    def match(self) -> None:
        """Restore the variables that were not restored yet."""
        for key, variable in self.variables().items():
            found = None if key in self.taken else self.saved.key(key)
            if found is not None:
                trackable.assign(variable, found, self.saved.tensors[found])
                self.taken[key], self._restored[key] = found, ref(variable)

    def without_values(self) -> list[Any]:
        """Return the variables that exist now and have no value, such as those that have replaced restored ones."""
        return [
            variable
            for key, variable in self.variables().items()
            if key not in self._restored or self._restored[key]() is not variable
        ]

    def is_over(self) -> bool:
        """Return whether all values are assigned, or no object is left that could create further variables."""
        return not self.left() or all(child() is None for child in self._children.values())

    def left(self) -> list[str]:
        """Return the keys of the values that were not assigned to a variable."""
        taken = set(self.taken.values())
        return [key for key in self.saved.tensors if key not in taken]


def restore(restoration: Restoration) -> None:
    """Restore the variables that exist now, and later those that are created."""
    restoration.match()
    if not restoration.is_over():
        RESTORATIONS.append(restoration)


class CheckpointLoadStatus:
    """The result of a restoration. Variables that are created later are restored then."""

    def __init__(self, restoration: Restoration) -> None:
        self._restoration = restoration

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Require that every value was assigned to a variable, and every variable has a value.

        Raises:
            AssertionError: this is not so; the text shows a key, or the variables.
        """
        self._restoration.match()
        for key in self._restoration.left():
            name = key.removesuffix(trackable.VALUE).replace("/", ".")
            raise _failed(f"Unresolved object in checkpoint (root).{name}: no variable here has taken its value")
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """Require that every variable that exists now has a value in the checkpoint.

        Raises:
            AssertionError: this is not so; the text shows the variables.
        """
        self._restoration.match()
        without = self._restoration.without_values()
        if without:
            shown = without[:10]
            raise _failed(
                f"Found {len(without)} Python objects that were not bound to checkpointed values, likely due to "
                f"changes in the Python program. Showing {len(shown)} of {len(without)} unmatched objects: {shown}"
            )
        return self

    def assert_nontrivial_match(self) -> CheckpointLoadStatus:
        """Require that some value was assigned to a variable.

        Raises:
            AssertionError: no value was assigned.
        """
        self._restoration.match()
        if not self._restoration.taken:
            raise _failed("Nothing to load: no variable here has a value in the checkpoint")
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Do nothing: the values are restored."""

    run_restore_ops = initialize_or_restore

    def expect_partial(self) -> CheckpointLoadStatus:
        """Return this object. In TensorFlow this suppresses warnings about unused values; here there are none."""
        return self


class InitializationOnlyStatus:
    """The result of a restoration without a path: every variable keeps its value."""

    def _fail(self) -> Any:
        raise _failed("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_consumed = assert_existing_objects_matched = assert_nontrivial_match = _fail

    def initialize_or_restore(self, session: Any = None) -> None:
        """Do nothing: variables have their values from the start."""

    run_restore_ops = _fail

    def expect_partial(self) -> InitializationOnlyStatus:
        """Return this object."""
        return self


def _failed(text: str) -> Exception:
    return also(ArgumentError, AssertionError)(text)
