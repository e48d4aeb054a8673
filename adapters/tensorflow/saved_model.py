"""``tf.saved_model``: only its options, which programs use in annotations. Source: TensorFlow 2.21."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from collshim.adapting.absent import saying

__all__ = ["LoadOptions", "SaveOptions"]


@dataclass(frozen=True)
class SaveOptions:
    """Options of ``save``, which exists only in TensorFlow."""

    namespace_whitelist: Any = None
    save_debug_info: bool = False
    function_aliases: Any = None
    experimental_debug_stripper: bool = False
    experimental_io_device: str | None = None
    experimental_variable_policy: Any = None
    experimental_custom_gradients: bool = True
    experimental_image_format: bool = False
    experimental_skip_saver: bool = False
    experimental_sharding_callback: Any = None
    extra_tags: Any = None


@dataclass(frozen=True)
class LoadOptions:
    """Options of ``load``, which exists only in TensorFlow."""

    allow_partial_checkpoint: bool = False
    experimental_io_device: str | None = None
    experimental_skip_checkpoint: bool = False
    experimental_variable_policy: Any = None
    experimental_load_function_aliases: bool = False


__getattr__ = saying(__name__, "use torch.export, or keras's save")
