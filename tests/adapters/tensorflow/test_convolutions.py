"""``tf.nn``'s convolutions and pools, with their gradients. The numbers were recorded on TensorFlow 2.21."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collshim.tensorflow as tf

nn = tf.nn


def wave(*shape: int) -> Any:
    return np.sin(np.arange(np.prod(shape), dtype=np.float32) * 0.7).reshape(shape)


IMAGES = {1: wave(2, 7, 4), 2: wave(2, 7, 6, 4), 3: wave(1, 5, 6, 4, 2)}
FILTERS = {1: wave(3, 4, 5), 2: wave(3, 2, 4, 5), 3: wave(2, 3, 2, 2, 3)}
SWAPPED = {1: wave(3, 5, 4), 2: wave(3, 2, 5, 4), 3: wave(2, 3, 2, 3, 2)}

# For each case, the number of spatial axes, negative if the filters are those of a transposed convolution.
CASES: dict[str, tuple[int, Callable[[Any, Any], Any]]] = {
    "conv1d SAME": (1, lambda x, w: nn.conv1d(x, w, 2, "SAME")),
    "conv1d VALID": (1, lambda x, w: nn.conv1d(x, w, [2], "VALID")),
    "conv2d SAME": (2, lambda x, w: nn.conv2d(x, w, [1, 2, 3, 1], "SAME")),
    "conv2d pairs": (2, lambda x, w: nn.conv2d(x, w, 1, [[0, 0], [1, 2], [0, 1], [0, 0]])),
    "conv2d groups": (2, lambda x, w: nn.conv2d(x, w[:, :, :2, :4], 1, "SAME")),
    "conv3d VALID": (3, lambda x, w: nn.conv3d(x, w, [1, 2, 2, 1, 1], "VALID")),
    "convolution dilated": (2, lambda x, w: nn.convolution(x, w, padding="SAME", dilations=[2, 1])),
    "depthwise_conv2d": (2, lambda x, w: nn.depthwise_conv2d(x, w, [1, 2, 2, 1], "SAME")),
    "max_pool1d": (1, lambda x, _: nn.max_pool1d(x, 3, 2, "SAME")),
    "max_pool2d": (2, lambda x, _: nn.max_pool2d(x, [3, 2], 2, "VALID")),
    "max_pool3d": (3, lambda x, _: nn.max_pool3d(x, 2, 2, "SAME")),
    "max_pool": (2, lambda x, _: nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")),
    "avg_pool1d": (1, lambda x, _: nn.avg_pool1d(x, 3, 2, "SAME")),
    "avg_pool2d": (2, lambda x, _: nn.avg_pool2d(x, 2, [3, 2], "SAME")),
    "avg_pool3d": (3, lambda x, _: nn.avg_pool3d(x, 2, 1, "VALID")),
    "avg_pool": (2, lambda x, _: nn.avg_pool(x, 2, 2, "SAME")),
    "conv1d_transpose": (-1, lambda x, w: nn.conv1d_transpose(x, w, [2, 14, 5], 2, "SAME")),
    "conv2d_transpose": (-2, lambda x, w: nn.conv2d_transpose(x, w, [2, 16, 13, 5], 2, "VALID")),
    "conv3d_transpose": (-3, lambda x, w: nn.conv3d_transpose(x, w, [1, 5, 6, 4, 3], 1, "SAME")),
    "conv_transpose": (-1, lambda x, w: nn.conv_transpose(x, w, [2, 21, 5], 3, "SAME")),
}

# The shape of the result, its weighted sum, and the norms of the gradients for the images and the filters.
WANTED: dict[str, tuple[list[int], list[float | None]]] = {
    "conv1d SAME": ([2, 4, 5], [-0.021, 14.987, 15.49]),
    "conv1d VALID": ([2, 3, 5], [1.224, 13.581, 9.548]),
    "conv2d SAME": ([2, 4, 2, 5], [-7.964, 19.616, 42.926]),
    "conv2d pairs": ([2, 8, 6, 5], [0.378, 70.596, 5.342]),
    "conv2d groups": ([2, 7, 6, 4], [0.222, 19.779, 2.639]),
    "conv3d VALID": ([1, 2, 2, 3, 3], [0.329, 27.142, 4.52]),
    "convolution dilated": ([2, 7, 6, 5], [1.107, 135.935, 9.909]),
    "depthwise_conv2d": ([2, 4, 3, 20], [-11.336, 23.952, 56.761]),
    "max_pool1d": ([2, 4, 4], [-0.569, 3.446, None]),
    "max_pool2d": ([2, 3, 3, 4], [1.906, 7.147, None]),
    "max_pool3d": ([1, 3, 3, 2, 2], [-1.411, 4.305, None]),
    "max_pool": ([2, 4, 3, 4], [2.097, 6.959, None]),
    "avg_pool1d": ([2, 4, 4], [-0.103, 2.182, None]),
    "avg_pool2d": ([2, 3, 3, 4], [0.167, 3.465, None]),
    "avg_pool3d": ([1, 4, 5, 3, 2], [-1.736, 3.378, None]),
    "avg_pool": ([2, 4, 3, 4], [-0.312, 3.894, None]),
    "conv1d_transpose": ([2, 14, 5], [2.164, 2.581, 22.96]),
    "conv2d_transpose": ([2, 16, 13, 5], [12.269, 8.795, 52.061]),
    "conv3d_transpose": ([1, 5, 6, 4, 3], [8.649, 8.667, 29.936]),
    "conv_transpose": ([2, 21, 5], [1.098, 2.72, 9.866]),
}


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_tensorflows(name: str) -> None:
    axes, compute = CASES[name]
    images, filters = tf.constant(IMAGES[abs(axes)]), tf.constant((FILTERS if axes > 0 else SWAPPED)[abs(axes)])
    with tf.GradientTape() as tape:
        tape.watch([images, filters])
        found = compute(images, filters)
        weights = np.cos(np.arange(np.prod(found.shape), dtype=np.float32)).reshape(found.shape)
        total = tf.reduce_sum(found * tf.constant(weights))
    gradients = tape.gradient(total, [images, filters])
    norms = [None if one is None else float(np.linalg.norm(one.numpy())) for one in gradients]
    shape, wanted = WANTED[name]
    assert list(found.shape) == shape
    assert [float(total), *norms] == [one if one is None else pytest.approx(one, abs=2e-3) for one in wanted]


def test_channels_may_come_first() -> None:
    images, filters = tf.constant(IMAGES[2]), tf.constant(FILTERS[2])
    last = nn.conv2d(images, filters, [1, 2, 1, 1], "SAME")
    first = nn.conv2d(tf.transpose(images, [0, 3, 1, 2]), filters, [1, 1, 2, 1], "SAME", data_format="NCHW")
    assert np.allclose(tf.transpose(first, [0, 2, 3, 1]).numpy(), last.numpy(), atol=1e-5)


def test_further_axes_belong_to_the_batch() -> None:
    images, filters = tf.constant(IMAGES[1]), tf.constant(FILTERS[1])
    several = nn.conv1d(tf.stack([images, images]), filters, 1, "SAME")
    assert list(several.shape) == [2, 2, 7, 5]
    assert (several[1].numpy() == nn.conv1d(images, filters, 1, "SAME").numpy()).all()


def test_padding_is_less_than_any_number_for_maxima() -> None:
    assert nn.max_pool2d(-tf.ones([1, 3, 3, 1]), 2, 2, "SAME").numpy().max() == -1
    assert nn.max_pool2d(tf.constant([[[[-3], [-2]]]]), 2, 2, "SAME").numpy().tolist() == [[[[-2]]]]


def test_arguments_that_do_not_fit_are_refused() -> None:
    images, filters = tf.constant(IMAGES[2]), tf.constant(FILTERS[2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="input depth must be evenly divisible by filter depth"):
        nn.conv2d(images, filters[:, :, :3], 1, "SAME")
    with pytest.raises(ValueError, match="padding is 'same', should be"):
        nn.conv2d(images, filters, 1, "same")
    with pytest.raises(ValueError, match="padding has 1 pairs, should have one for each axis"):
        nn.conv2d(images, filters, 1, [[1, 1]])
    with pytest.raises(ValueError, match="strides should be of length 1, 2 or 4 but was 3"):
        nn.conv2d(images, filters, [1, 2, 3], "SAME")
    with pytest.raises(ValueError, match="input has 3 axes, should have at least 4"):
        nn.conv2d(tf.constant(IMAGES[1]), filters, 1, "SAME")
    with pytest.raises(ValueError, match="filters have 3 axes, should have 4"):
        nn.conv2d(images, tf.constant(FILTERS[1]), 1, "SAME")
    with pytest.raises(ValueError, match="filter has 3 axes, should have 4"):
        nn.depthwise_conv2d(images, tf.constant(FILTERS[1]), 1, "SAME")
    with pytest.raises(ValueError, match="the images have 4 spatial axes, should have 1, 2 or 3"):
        nn.convolution(tf.ones([1] * 6), tf.ones([1] * 6))
