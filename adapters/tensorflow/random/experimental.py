"""``tf.random.experimental``: the generators and the functions on seeds under their older names."""

from __future__ import annotations

from collshim.tensorflow.random_generators import (
    Algorithm,
    Generator,
    create_rng_state,
    get_global_generator,
    set_global_generator,
)
from collshim.tensorflow.random_generators import fold_in as stateless_fold_in
from collshim.tensorflow.random_generators import split as stateless_split

__all__ = [
    "Algorithm",
    "Generator",
    "create_rng_state",
    "get_global_generator",
    "set_global_generator",
    "stateless_fold_in",
    "stateless_split",
]
