"""``tf.random.experimental``: the generators under their older names."""

from __future__ import annotations

from collshim.tensorflow.random_generators import (
    Algorithm,
    Generator,
    create_rng_state,
    get_global_generator,
    set_global_generator,
)

__all__ = ["Algorithm", "Generator", "create_rng_state", "get_global_generator", "set_global_generator"]
