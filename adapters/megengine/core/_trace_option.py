"""Switches of tracing, which does not exist here: values are only stored (``megengine.core._trace_option``)."""

from __future__ import annotations

import os

_options = {
    "symbolic shape": bool(os.environ.get("MEGENGINE_USE_SYMBOLIC_SHAPE")),
    "xla backend": False,
}


def use_symbolic_shape() -> bool:
    """Return the value passed to ``set_symbolic_shape``. ``Tensor.shape`` is always a tuple."""
    return _options["symbolic shape"]


def set_symbolic_shape(option: bool) -> bool:
    """Keep the switch and return its old value."""
    return _exchange("symbolic shape", option)


def use_xla_backend() -> bool:
    """Return the value passed to ``set_use_xla_backend``."""
    return _options["xla backend"]


def set_use_xla_backend(option: bool) -> bool:
    """Keep the switch and return its old value."""
    return _exchange("xla backend", option)


def _exchange(name: str, value: bool) -> bool:
    earlier, _options[name] = _options[name], value
    return earlier
