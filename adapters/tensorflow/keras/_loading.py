"""Imports Keras with torch as its backend."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from collshim.errors import CollshimError, also

NAMES = "keras._tf_keras.keras"  # has all names of tf.keras: also losses.Reduction, and others from before Keras 3
_SETTING = "KERAS_BACKEND"
_OLDEST = (3, 10)


def load() -> Any:
    """Import Keras 3 with the names of ``tf.keras``, and return the module.

    Raises:
        ModuleNotFoundError: Keras is not installed.
        ImportError: Keras is too old, or a different backend is loaded or configured.
    """
    chosen = os.environ.get(_SETTING, "torch")
    _require_torch(chosen, f"{_SETTING}={chosen}")
    os.environ[_SETTING] = chosen
    try:
        keras = import_module(NAMES)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "keras":
            raise
        kind = also(CollshimError, ModuleNotFoundError)
        oldest = ".".join(map(str, _OLDEST))
        text = f"tf.keras is Keras 3 on torch, which is not installed: pip install 'keras>={oldest}'"
        raise kind(text) from error
    if tuple(int(number) for number in keras.__version__.split(".")[:2]) < _OLDEST:
        raise also(CollshimError, ImportError)(f"Keras is {keras.__version__}: should be 3.10 or newer")
    found = keras.backend.backend()
    _require_torch(found, f"Keras was imported before with the backend {found}")
    return keras


def _require_torch(backend: str, found: str) -> None:
    if backend != "torch":
        raise also(CollshimError, ImportError)(f"{found}: should be torch, the only backend of tf.keras in collshim")
