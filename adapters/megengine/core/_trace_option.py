"""Switches of tracing, which is not done here: they keep what they were given (``megengine.core._trace_option``)."""

from __future__ import annotations

import os

_options = {
    "symbolic shape": bool(os.environ.get("MEGENGINE_USE_SYMBOLIC_SHAPE")),
    "xla backend": False,
}


def use_symbolic_shape() -> bool:
    """What ``set_symbolic_shape`` was given. ``Tensor.shape`` is a tuple all the same."""
    return _options["symbolic shape"]


def set_symbolic_shape(option: bool) -> bool:
    """Keep the switch; what it was before."""
    return _exchange("symbolic shape", option)


def use_xla_backend() -> bool:
    """What ``set_use_xla_backend`` was given."""
    return _options["xla backend"]


def set_use_xla_backend(option: bool) -> bool:
    """Keep the switch; what it was before."""
    return _exchange("xla backend", option)


def _exchange(name: str, value: bool) -> bool:
    earlier, _options[name] = _options[name], value
    return earlier
