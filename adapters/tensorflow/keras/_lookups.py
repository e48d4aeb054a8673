"""Keras's lookup layers, which compute with TensorFlow on every backend: here, with this adapter."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from collshim.tensorflow.arithmetic import cast
from collshim.tensorflow.conversion import convert_to_tensor

_MODULES = (
    "layers.preprocessing.index_lookup",
    "layers.preprocessing.integer_lookup",
    "layers.preprocessing.string_lookup",
    "utils.tf_utils",
)


def install() -> None:
    """Let ``StringLookup`` and ``IntegerLookup`` use ``collshim.tensorflow`` as TensorFlow."""
    utilities = import_module("keras.src.utils.module_utils")
    for name in _MODULES:
        module: Any = import_module(f"keras.src.{name}")
        module.tf = utilities.LazyModule("collshim.tensorflow")
    layers = import_module("keras.src.layers.preprocessing.index_lookup").IndexLookup
    for kind in (layers, *layers.__subclasses__()):
        kind.call = _call


def _call(self: Any, inputs: Any) -> Any:
    """Return the numbers of the inputs, or the rows that ``output_mode`` makes of them, with torch as the backend."""
    lookups = self._lookup_dense(cast(convert_to_tensor(inputs), self._key_dtype))
    if self.output_mode == "int":
        return lookups
    encode = import_module("keras.src.utils.numerical_utils").encode_categorical_inputs
    mode = "count" if self.output_mode == "tf_idf" else self.output_mode
    depth = self.max_tokens if self.pad_to_max_tokens else self.vocabulary_size()
    backend = import_module("keras.src.backend")
    rows = encode(lookups, output_mode=mode, depth=depth, dtype=self._value_dtype, backend_module=backend)
    return rows * self.idf_weights_const if self.output_mode == "tf_idf" else rows
