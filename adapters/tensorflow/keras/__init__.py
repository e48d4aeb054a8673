"""``tf.keras``: Keras 3 on its torch backend, unmodified but for what strategies and tapes need.

    pip install 'keras>=3.10'    # collshim's extra keras

Every name is Keras's own, as TensorFlow 2.21 has them under ``tf.keras``. What differs from Keras on torch alone:

- Variables, and what is computed of them, are ``tf.Tensor``s; a ``tf.GradientTape`` records what it reads of them.
- A variable that is made under a strategy with several replicas has a copy for each, equal on all of them: that of the
  first replica. In ``strategy.run`` a replica reads and writes its own, and across replicas the first is read;
  ``aggregation`` says what becomes of what several replicas assign. Those of metrics are summed where they are read
  across replicas.
- ``optimizer.apply_gradients`` in ``strategy.run`` adds the gradients of all replicas up; each then updates its copy.

Whoever imports Keras itself in the same process has the same variables. Source: TensorFlow 2.21 with Keras 3.15 on two
CPUs.
"""

from __future__ import annotations

from typing import Any

from collshim.adapting import fall_through as _fall_through
from collshim.tensorflow.keras import _strategies, _tensors, _variables
from collshim.tensorflow.keras._loading import NAMES as _NAMES
from collshim.tensorflow.keras._loading import load as _load

_keras = _load()
_tensors.install()
_variables.install()
_strategies.install()
_fall_through.install(__name__, _NAMES)
_get = _fall_through.names(__name__, [_keras])


def __getattr__(name: str) -> Any:
    return _get(name)


def __dir__() -> list[str]:
    return [name for name in dir(_keras) if not name.startswith("_")]
