"""``tf.keras``: Keras 3 on its torch backend, unmodified except for strategies and tapes.

    pip install 'keras>=3.10'    # collshim's extra keras

Every name is Keras's own, as TensorFlow 2.21 has them under ``tf.keras``. Differences from Keras on torch alone:

- Values of variables, and results computed from them, are ``tf.Tensor``s; a ``tf.GradientTape`` records reads of
  variables.
- A variable that is created under a strategy with several replicas has a copy for each replica; at first, all equal the
  first replica's. In ``strategy.run``, a replica reads and writes its own copy; across replicas, the first copy is
  read. ``aggregation`` combines the values that several replicas assign. The copies of metrics' variables are summed
  when they are read across replicas.
- ``optimizer.apply_gradients`` in ``strategy.run`` sums the gradients of all replicas; each replica then updates its
  copy.
- ``BatchNormalization(synchronized=True)`` normalizes the rows of all replicas.

Code that imports Keras itself in the same process uses the same variables. Source: TensorFlow 2.21 with Keras 3.15 on
two CPUs.
"""

from __future__ import annotations

from typing import Any

from collshim.adapting import fall_through as _fall_through
from collshim.adapting.absent import refuse_below as _refuse_below
from collshim.tensorflow.keras import (
    _checkpoints,
    _lookups,
    _normalization,
    _saving,
    _strategies,
    _tensors,
    _training,
    _variables,
)
from collshim.tensorflow.keras._loading import NAMES as _NAMES
from collshim.tensorflow.keras._loading import load as _load

_keras = _load()
_tensors.install()
_variables.install()
_strategies.install()
_checkpoints.install()
_normalization.install()
_training.install()
_saving.install()
_lookups.install()
_fall_through.install(__name__, _NAMES)
_refuse_below(__name__, f"Keras {_keras.__version__} has no such name")
_get = _fall_through.names(__name__, [_keras])


def __getattr__(name: str) -> Any:
    return _get(name)


def __dir__() -> list[str]:
    return [name for name in dir(_keras) if not name.startswith("_")]
