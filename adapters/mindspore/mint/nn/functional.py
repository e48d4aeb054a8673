"""``mindspore.mint.nn.functional``: the functions that torch also has (source: MindSpore 2.10.0)."""

import torch.nn.functional

from collshim.adapting.absent import saying
from collshim.mindspore import slopes
from collshim.mindspore._of_torch import of_torch

_FUNCTIONS = """
adaptive_avg_pool1d adaptive_avg_pool2d avg_pool1d avg_pool2d batch_norm binary_cross_entropy
binary_cross_entropy_with_logits conv1d conv2d conv3d conv_transpose2d cross_entropy dropout elu embedding gelu glu
group_norm hardshrink hardsigmoid hardtanh kl_div l1_loss layer_norm leaky_relu linear log_softmax
logsigmoid max_pool2d mish mse_loss nll_loss normalize one_hot pad pixel_shuffle prelu relu relu6 selu sigmoid silu
smooth_l1_loss softmax softplus softshrink tanh threshold
"""
_MADE = of_torch(__name__, torch.nn.functional, _FUNCTIONS)
_MADE |= of_torch(__name__, slopes, "hardswish")
vars().update(_MADE)

__all__: list[str] = []
__all__ += list(_MADE)  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__ = saying(__name__)
