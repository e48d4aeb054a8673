"""Transforms of images (source: MegEngine 1.13.0, ``megengine.data.transform.vision.transform``).

Random transforms draw from ``numpy.random``, in MegEngine's order, so that a seed yields MegEngine's images.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from collshim.errors import ArgumentError, ArgumentValueError, also
from collshim.megengine.data.transform.meta_transform import Transform
from collshim.megengine.data.transform.vision import functional as F
from collshim.megengine.data.transform.vision.functional import Image

__all__ = [
    "CenterCrop",
    "Compose",
    "Normalize",
    "Pad",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomVerticalFlip",
    "Resize",
    "ToMode",
    "VisionTransform",
]

LINEAR = 1
"""OpenCV's INTER_LINEAR."""


class VisionTransform(Transform):
    """The base class of image transforms: a subclass implements ``_apply_image``, and similar methods for other parts.

    Args:
        order: the names of a sample's parts, in order; ``("image",)`` for None. Parts whose name ends in ``category``
            or ``info`` are left unchanged, as are further parts of a sample. ValueError if it is not a sequence;
            NotImplementedError for a name without a method: the transforms here only have the image's.
    """

    def __init__(self, order: Sequence[str] | None = None) -> None:
        self.order: Sequence[str] = ("image",) if order is None else order
        if not isinstance(self.order, Sequence):
            raise ArgumentValueError(f"order should be a sequence, but got order={order}")
        for name in self.order:
            if name == "batch":
                raise ArgumentValueError(f"{name} is invalid data type")
            if not name.endswith(("category", "info")) and self._get_apply(name) is None:
                raise also(ArgumentError, NotImplementedError)(f"{name} is unsupported data type")

    def apply(self, input: Any) -> Any:
        """Return a transformed sample: a tuple, or its part if there is only one."""
        parts = list(input) if isinstance(input, tuple) else [input]
        for place, name in enumerate(tuple(self.order)[: len(parts)]):
            method = self._get_apply(name)
            parts[place] = parts[place] if method is None else method(parts[place])
        return parts[0] if len(parts) == 1 else tuple(parts)

    def _get_apply(self, key: str) -> Any:
        return getattr(self, f"_apply_{key}", None)

    def _get_image(self, input: Any) -> Image:
        found: Image = (input if isinstance(input, tuple) else (input,))[self.order.index("image")]
        return found

    def _apply_image(self, image: Image) -> Image:
        raise NotImplementedError


class ToMode(VisionTransform):
    """Moves the channels from the last axis to the first: (C, H, W).

    Args:
        mode: ``"CHW"``; AssertionError for any other.
        order: as in ``VisionTransform``.
    """

    def __init__(self, mode: str = "CHW", *, order: Sequence[str] | None = None) -> None:
        super().__init__(order)
        _require(mode == "CHW", f"unsupported mode: {mode}")
        self.mode = mode

    def _apply_image(self, image: Image) -> Image:
        return np.ascontiguousarray(np.rollaxis(image, 2))


class Compose(VisionTransform):
    """Applies transforms one after another.

    Args:
        transforms: the transforms; their ``order`` is replaced by this one's.
        batch_compose: whether to apply each transform to the entire batch before the next.
        shuffle_indices: groups of positions, counted from 1, whose transforms are shuffled for each sample. ValueError
            together with ``batch_compose``.
        order: as in ``VisionTransform``.
    """

    def __init__(
        self,
        transforms: Sequence[Any] = (),
        batch_compose: bool = False,
        shuffle_indices: Sequence[Sequence[int]] | None = None,
        *,
        order: Sequence[str] | None = None,
    ) -> None:
        super().__init__(order)
        self.transforms = transforms
        self._set_order()
        if batch_compose and shuffle_indices is not None:
            raise ArgumentValueError("Do not support shuffle when apply transforms along the whole batch")
        self.batch_compose = batch_compose
        groups = shuffle_indices
        self.shuffle_indices = None if groups is None else [tuple(place - 1 for place in group) for group in groups]

    def _set_order(self) -> None:
        for transform in self.transforms:
            transform.order = self.order
            if isinstance(transform, Compose):
                transform._set_order()

    def apply_batch(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return the transformed samples of a batch."""
        if not self.batch_compose:
            return super().apply_batch(inputs)
        for transform in self.transforms:
            inputs = transform.apply_batch(inputs)
        return inputs

    def apply(self, input: Any) -> Any:
        """Return a transformed sample."""
        for transform in self._shuffle():
            input = transform.apply(input)
        return input

    def _shuffle(self) -> Sequence[Any]:
        places = list(range(len(self.transforms)))
        for group in self.shuffle_indices or ():
            for place, other in zip(group, np.random.permutation(group).tolist(), strict=True):
                places[place] = other
        return [self.transforms[place] for place in places]


class Pad(VisionTransform):
    """Adds a border to images.

    Args:
        size: one width for all sides; two widths, for the bottom and the right; or four, for the top, bottom, left and
            right. ValueError otherwise.
        value: the border's value in each channel; a single number is used for channel 0. If it is a float, the image
            becomes float32.
        mask_value: the value in masks, which are not supported; ValueError if it is not an int.
        order: as in ``VisionTransform``.
    """

    def __init__(
        self, size: Any = 0, value: Any = 0, mask_value: int = 0, *, order: Sequence[str] | None = None
    ) -> None:
        super().__init__(order)
        self.size, self.value, self.mask_value = F.sides(size), value, mask_value
        if not isinstance(mask_value, int):
            raise ArgumentValueError(f"mask_value should be a positive integer, but got mask_value={mask_value}")

    def _apply_image(self, image: Image) -> Image:
        return F.pad(image, self.size, self.value)


class Resize(VisionTransform):
    """Resizes images.

    Args:
        output_size: the height and the width, or one number for the shorter side, which keeps the aspect ratio.
        interpolation: OpenCV's number of the method, as in ``functional.resize``.
        order: as in ``VisionTransform``.
    """

    def __init__(self, output_size: Any, interpolation: Any = LINEAR, *, order: Sequence[str] | None = None) -> None:
        super().__init__(order)
        self.output_size, self.interpolation = output_size, interpolation

    def _apply_image(self, image: Image) -> Image:
        if isinstance(self.output_size, int):
            shorter = min(image.shape[:2])
            size = tuple(int(self.output_size * length / shorter) for length in image.shape[:2])
        else:
            size = tuple(self.output_size)
        return image if image.shape[:2] == size else F.resize(image, size, self.interpolation)


class CenterCrop(VisionTransform):
    """Crops images to their centre; AssertionError if an image is smaller.

    Args:
        output_size: the height and the width, or one number for both.
        order: as in ``VisionTransform``.
    """

    def __init__(self, output_size: Any, *, order: Sequence[str] | None = None) -> None:
        super().__init__(order)
        self.output_size = _pair(output_size)

    def _apply_image(self, image: Image) -> Image:
        (height, width), (own_height, own_width) = self.output_size, image.shape[:2]
        _require(height <= own_height and width <= own_width, "output size is bigger than image size")
        top, left = round((own_height - height) / 2.0), round((own_width - width) / 2.0)
        return image[top : top + height, left : left + width]


class RandomCrop(VisionTransform):
    """Adds a border, and crops at a random position; a padded image that is still too small is padded further.

    Args:
        output_size: the height and the width, or one number for both.
        padding_size: the border, as in ``Pad``.
        padding_value: the border's values, as in ``Pad``.
        padding_maskvalue: the value in masks, which are not supported.
        order: as in ``VisionTransform``.
    """

    def __init__(
        self,
        output_size: Any,
        padding_size: Any = 0,
        padding_value: Any = (0, 0, 0),
        padding_maskvalue: int = 0,
        *,
        order: Sequence[str] | None = None,
    ) -> None:
        super().__init__(order)
        self.output_size = _pair(output_size)
        self.pad = Pad(padding_size, padding_value, order=self.order)
        self.padding_value, self.padding_maskvalue = padding_value, padding_maskvalue

    def _apply_image(self, image: Image) -> Image:
        image = self.pad._apply_image(image)
        (height, width), (own_height, own_width) = self.output_size, image.shape[:2]
        left = np.random.randint(0, max(0, own_width - width) + 1)
        top = np.random.randint(0, max(0, own_height - height) + 1)
        if height > own_height:
            image = F.pad(image, (height - own_height, 0), self.padding_value)
        if width > own_width:
            image = F.pad(image, (0, width - own_width), self.padding_value)
        return image[top : top + height, left : left + width]


class RandomResizedCrop(VisionTransform):
    """Crops to a random size and aspect ratio at a random position, and resizes the result.

    Args:
        output_size: the height and the width of the result, or one number for both.
        scale_range: the least and the greatest fraction of the area. AssertionError if they are in the wrong order.
        ratio_range: the least and the greatest ratio of width to height. AssertionError if they are in the wrong order.
        interpolation: OpenCV's number of the method, as in ``functional.resize``.
        order: as in ``VisionTransform``.
    """

    def __init__(
        self,
        output_size: Any,
        scale_range: tuple[float, float] = (0.08, 1.0),
        ratio_range: tuple[float, float] = (3.0 / 4, 4.0 / 3),
        interpolation: Any = LINEAR,
        *,
        order: Sequence[str] | None = None,
    ) -> None:
        super().__init__(order)
        self.output_size = _pair(output_size)
        _require(scale_range[0] <= scale_range[1], "scale_range should be of kind (min, max)")
        _require(ratio_range[0] <= ratio_range[1], "ratio_range should be of kind (min, max)")
        self.scale_range, self.ratio_range, self.interpolation = scale_range, ratio_range, interpolation

    def _apply_image(self, image: Image) -> Image:
        left, top, width, height = self._get_coord(image)
        return F.resize(image[top : top + height, left : left + width], self.output_size, self.interpolation)

    def _get_coord(self, image: Image, attempts: int = 10) -> tuple[int, int, int, int]:
        own_height, own_width = image.shape[:2]
        low, high = map(math.log, self.ratio_range)
        for _ in range(attempts):
            area = np.random.uniform(*self.scale_range) * own_height * own_width
            ratio = math.exp(np.random.uniform(low, high))
            width, height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < width <= own_width and 0 < height <= own_height:
                left = np.random.randint(0, own_width - width + 1)
                return left, np.random.randint(0, own_height - height + 1), width, height
        narrowest, widest = min(self.ratio_range), max(self.ratio_range)
        width, height = own_width, own_height
        if own_width / own_height < narrowest:
            height = round(own_width / narrowest)
        elif own_width / own_height > widest:
            width = round(own_height * widest)
        return (own_width - width) // 2, (own_height - height) // 2, width, height


class RandomHorizontalFlip(VisionTransform):
    """Flips images horizontally with a probability.

    Args:
        prob: the probability.
        order: as in ``VisionTransform``.
    """

    _code = 1

    def __init__(self, prob: float = 0.5, *, order: Sequence[str] | None = None) -> None:
        super().__init__(order)
        self.prob = prob

    def _apply_image(self, image: Image) -> Image:
        return F.flip(image, self._code) if np.random.random() < self.prob else image


class RandomVerticalFlip(RandomHorizontalFlip):
    """Flips images vertically with a probability; the arguments are those of ``RandomHorizontalFlip``."""

    _code = 0


class Normalize(VisionTransform):
    """Subtracts a mean and divides by a standard deviation, in each channel of the last axis, in float32.

    Args:
        mean: the mean, one for all channels or one for each.
        std: the standard deviation, one for all channels or one for each.
        order: as in ``VisionTransform``.
    """

    def __init__(self, mean: Any = 0.0, std: Any = 1.0, *, order: Sequence[str] | None = None) -> None:
        super().__init__(order)
        self.mean, self.std = np.array(mean, dtype=np.float32), np.array(std, dtype=np.float32)

    def _apply_image(self, image: Image) -> Image:
        result: Image = (image - self.mean) / self.std
        return result


def _pair(size: Any) -> Any:
    return (size, size) if isinstance(size, int) else size


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise also(ArgumentValueError, AssertionError)(text)
