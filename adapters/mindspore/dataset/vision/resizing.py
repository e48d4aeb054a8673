"""Resizing of images, with the same results as MindSpore 2.10.0, which uses OpenCV.

Bytes are interpolated in integers: with weights of 11 bits, first along a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["bilinear", "nearest"]
Array = np.ndarray[Any, Any]


def nearest(image: Array, height: int, width: int) -> Array:
    """Return the image resized to (height, width), with the nearest pixels."""
    rows: Array = np.minimum((np.arange(height) * (image.shape[0] / height)).astype(int), image.shape[0] - 1)
    columns = np.minimum((np.arange(width) * (image.shape[1] / width)).astype(int), image.shape[1] - 1)
    nearest_pixels: Array = image[rows][:, columns]
    return nearest_pixels


def bilinear(image: Array, height: int, width: int) -> Array:
    """Return the image resized to (height, width) by bilinear interpolation, in its dtype."""
    upper, lower, vertical = _neighbours(image.shape[0], height)
    left, right, horizontal = _neighbours(image.shape[1], width)
    horizontal[left == right] = 0
    if image.dtype != np.uint8:
        part = horizontal[None, :, None].astype(np.float32)
        rows: Array = image[:, left] * (1 - part) + image[:, right] * part
        part = vertical[:, None, None].astype(np.float32)
        mixed: Array = rows[upper] * (1 - part) + rows[lower] * part
        return mixed.astype(image.dtype)
    far, near = _weights(horizontal)
    whole = image.astype(np.int64)
    rows = whole[:, left] * near[None, :, None] + whole[:, right] * far[None, :, None]
    far, near = _weights(vertical)
    above = (near[:, None, None] * (rows[upper] >> 4)) >> 16
    below = (far[:, None, None] * (rows[lower] >> 4)) >> 16
    mixed = np.clip((above + below + 2) >> 2, 0, 255)
    return mixed.astype(np.uint8)


def _neighbours(length: int, wanted: int) -> tuple[Array, Array, Array]:
    """Return the two neighbours of each new position, and its distance from the first, from 0 to 1."""
    places = ((np.arange(wanted) + 0.5) * (length / wanted) - 0.5).astype(np.float32)
    first = np.floor(places).astype(int)
    part = places - first.astype(np.float32)
    return np.clip(first, 0, length - 1), np.clip(first + 1, 0, length - 1), part


def _weights(part: Array) -> tuple[Array, Array]:
    """Return the weights of the second and the first neighbour, in units of 1/2048."""
    return np.rint(part * np.float32(2048)).astype(np.int64), np.rint((1 - part) * np.float32(2048)).astype(np.int64)
