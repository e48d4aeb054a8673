"""``tf.compat``: ``v2`` has the names of ``tf`` itself, and ``v1`` has these and a few names of TensorFlow 1."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from collshim.adapting.absent import saying
from collshim.tensorflow.compat import v2

__all__ = ["as_bytes", "as_str", "as_str_any", "as_text", "v2"]


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Return ``bytes_or_text`` as text; bytes are decoded.

    Raises:
        TypeError: it is neither.
    """
    if not isinstance(bytes_or_text, str | bytes | bytearray):
        raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")
    return bytes_or_text if isinstance(bytes_or_text, str) else bytes_or_text.decode(encoding)


as_str = as_text


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Return ``bytes_or_text`` as bytes; text is encoded.

    Raises:
        TypeError: it is neither.
    """
    return as_text(bytes_or_text, encoding).encode(encoding)


def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """Return the text of any value; bytes are decoded."""
    return as_text(value, encoding) if isinstance(value, bytes | bytearray) else str(value)


_absent = saying(__name__)


def __getattr__(name: str) -> Any:
    """Import and return ``v1`` at its first use: it imports variables, so an earlier import would be a cycle."""
    return import_module(f"{__name__}.v1") if name == "v1" else _absent(name)
