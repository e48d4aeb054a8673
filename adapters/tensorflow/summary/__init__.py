"""``tf.summary``: writes data for TensorBoard by torch's writer, which uses the package ``tensorboard``.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

from collshim.adapting.absent import saying
from collshim.errors import ArgumentValueError, CollshimError, also
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.summary import experimental
from collshim.tensorflow.summary.experimental import STEP
from collshim.tensorflow.tensor import plain

__all__ = [
    "SummaryWriter",
    "create_file_writer",
    "create_noop_writer",
    "experimental",
    "flush",
    "histogram",
    "record_if",
    "scalar",
    "should_record_summaries",
]

_WRITER: ContextVar[Any] = ContextVar("summary_writer", default=None)
_RECORDS: ContextVar[Any] = ContextVar("records_summaries", default=True)


class SummaryWriter:
    """A writer of event files; ``tf.summary.create_file_writer`` makes it."""

    def __init__(self, torch_writer: Any) -> None:
        self._torch_writer = torch_writer

    @contextmanager
    def as_default(self, step: Any = None) -> Iterator[SummaryWriter]:
        """Let the functions inside the block write to this writer; calls without a step use ``step``."""
        writer, steps = _WRITER.set(self), STEP.set(STEP.get() if step is None else step)
        try:
            yield self
        finally:
            _WRITER.reset(writer)
            STEP.reset(steps)
            self.flush()

    def set_as_default(self, step: Any = None) -> None:
        """Let the functions write to this writer from now on, in this thread."""
        _WRITER.set(self)
        STEP.set(STEP.get() if step is None else step)

    def init(self) -> None:
        """Do nothing: the file already exists."""

    def flush(self) -> None:
        """Write buffered data to the file."""
        self._torch_writer.flush()

    def close(self) -> None:
        """Write buffered data to the file, and close it."""
        self._torch_writer.close()


class _NoWriter(SummaryWriter):
    """A writer that writes nothing, and does not replace the current writer."""

    def __init__(self) -> None:
        super().__init__(None)

    @contextmanager
    def as_default(self, step: Any = None) -> Iterator[SummaryWriter]:
        yield self

    def set_as_default(self, step: Any = None) -> None:
        pass

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


def create_noop_writer() -> SummaryWriter:
    """Return a writer that writes nothing."""
    return _NoWriter()


def create_file_writer(
    logdir: Any,
    max_queue: int | None = None,
    flush_millis: int | None = None,
    filename_suffix: str | None = None,
    name: str | None = None,
    experimental_trackable: bool = False,
    experimental_mesh: Any = None,
) -> SummaryWriter:
    """Return a writer of a new event file in a folder; ``name`` and the experimental arguments have no effect.

    Raises:
        ImportError: the package ``tensorboard`` is not installed.
    """
    try:
        torch_writer: Any = import_module("torch.utils.tensorboard").SummaryWriter
    except ImportError as error:
        raise also(CollshimError, ImportError)(
            f"tf.summary writes by the package tensorboard, which is not installed: pip install tensorboard ({error})"
        ) from error
    seconds = 120 if flush_millis is None else flush_millis / 1000
    return SummaryWriter(torch_writer(str(logdir), "", None, max_queue or 10, seconds, filename_suffix or ""))


def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> bool:
    """Write a number; return whether there is a writer that records.

    Raises:
        ValueError: there is no step.
    """
    return _write("add_scalar", name, float(convert_to_tensor(data)), step, new_style=True)


def histogram(name: str, data: Any, step: Any = None, buckets: Any = None, description: str | None = None) -> bool:
    """Write a histogram of numbers, with torch's buckets; return whether there is a writer that records.

    Raises:
        ValueError: there is no step.
    """
    return _write("add_histogram", name, plain(convert_to_tensor(data)).detach(), step)


def _write(method: str, name: str, value: Any, step: Any, **options: Any) -> bool:
    writer, number = _WRITER.get(), STEP.get() if step is None else step
    if not should_record_summaries():
        return False
    if number is None:
        raise ArgumentValueError(
            "No step set. Please specify one either through the `step` argument or through the writer's `as_default`"
        )
    getattr(writer._torch_writer, method)(name, value, int(number), **options)
    return True


def should_record_summaries() -> bool:
    """Return whether there is a writer, and the condition of ``record_if`` holds."""
    condition = _RECORDS.get()
    return _WRITER.get() is not None and bool(condition() if callable(condition) else condition)


@contextmanager
def record_if(condition: bool | Callable[[], Any]) -> Iterator[None]:
    """Write inside the block only if a condition holds; it may be a function, which is called each time."""
    token = _RECORDS.set(condition)
    try:
        yield
    finally:
        _RECORDS.reset(token)


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> None:
    """Write the buffered data of a writer, by default the current one."""
    found = writer or _WRITER.get()
    if found is not None:
        found.flush()


__getattr__ = saying(__name__, "torch.utils.tensorboard writes the rest")
