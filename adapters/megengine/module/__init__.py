"""``megengine.module``: layers."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.megengine.module import init
from collshim.megengine.module.activation import (
    GELU,
    Dropout,
    Identity,
    LeakyReLU,
    PReLU,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
)
from collshim.megengine.module.batchnorm import BatchNorm1d, BatchNorm2d, SyncBatchNorm
from collshim.megengine.module.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvRelu2d,
    ConvTranspose2d,
    ConvTranspose3d,
    LocalConv2d,
)
from collshim.megengine.module.conv_bn import ConvBn2d, ConvBnRelu2d
from collshim.megengine.module.elemwise import Elemwise
from collshim.megengine.module.embedding import Embedding
from collshim.megengine.module.linear import Linear, LinearRelu
from collshim.megengine.module.linear_bn import LinearBn1d, LinearBnRelu1d
from collshim.megengine.module.module import Module
from collshim.megengine.module.normalization import GroupNorm, InstanceNorm, LayerNorm
from collshim.megengine.module.pooling import AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool2d, MaxPool2d
from collshim.megengine.module.reshaping import Pad, PixelShuffle
from collshim.megengine.module.rnn import LSTM, RNN, LSTMCell, RNNCell
from collshim.megengine.module.sequential import Sequential

__all__ = [
    "GELU",
    "LSTM",
    "RNN",
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool2d",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvBn2d",
    "ConvBnRelu2d",
    "ConvRelu2d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Dropout",
    "Elemwise",
    "Embedding",
    "GroupNorm",
    "Identity",
    "InstanceNorm",
    "LSTMCell",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LinearBn1d",
    "LinearBnRelu1d",
    "LinearRelu",
    "LocalConv2d",
    "MaxPool2d",
    "Module",
    "PReLU",
    "Pad",
    "PixelShuffle",
    "RNNCell",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "SyncBatchNorm",
    "init",
]

__getattr__ = saying(__name__)
