"""``mindspore.nn.layer``: layers (source: MindSpore 2.10.0)."""

from collshim.mindspore.nn.layer import (
    activation,
    basic,
    container,
    conv,
    embedding,
    normalization,
    pooling,
    sync_normalization,
)
from collshim.mindspore.nn.layer.activation import *  # noqa: F403
from collshim.mindspore.nn.layer.basic import *  # noqa: F403
from collshim.mindspore.nn.layer.container import *  # noqa: F403
from collshim.mindspore.nn.layer.conv import *  # noqa: F403
from collshim.mindspore.nn.layer.embedding import *  # noqa: F403
from collshim.mindspore.nn.layer.normalization import *  # noqa: F403
from collshim.mindspore.nn.layer.pooling import *  # noqa: F403
from collshim.mindspore.nn.layer.sync_normalization import *  # noqa: F403

__all__: list[str] = []
__all__ += activation.__all__
__all__ += basic.__all__
__all__ += container.__all__
__all__ += conv.__all__
__all__ += embedding.__all__
__all__ += normalization.__all__
__all__ += pooling.__all__
__all__ += sync_normalization.__all__
