"""Operations on images (height, width, channels) of ``mindspore.dataset.vision`` (source: MindSpore 2.10.0).

Random operations use the seed of this rank's ``mindspore.dataset.config``; their numbers differ from MindSpore's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import is_number
from collshim.mindspore.dataset.core import config
from collshim.mindspore.dataset.vision.resizing import bilinear, nearest
from collshim.mindspore.dataset.vision.utils import Border, Inter

__all__ = [
    "HWC2CHW",
    "CenterCrop",
    "Normalize",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
    "Rescale",
    "Resize",
    "ToTensor",
]
Image = np.ndarray[Any, Any]


class _Operation:
    """An operation on an image."""

    def __call__(self, image: Any) -> Image:
        """Return the changed image.

        Raises:
            TypeError: the image is not an array.
            RuntimeError: the image does not have two or three axes.
        """
        if not isinstance(image, np.ndarray):
            refuse(TypeError, f"{self.name}: the image should be a NumPy array, but got {type(image)}")
        if image.ndim not in (2, 3):
            refuse(RuntimeError, f"{self.name}: the image should be <H,W> or <H,W,C>, but got the shape {image.shape}")
        return self._changed(image)

    @property
    def name(self) -> str:
        """The operation's name."""
        return type(self).__name__

    def _changed(self, image: Image) -> Image:
        raise NotImplementedError(f"{self.name}._changed")

    def _pair(self, what: str, value: Any) -> tuple[int, int]:
        numbers = (value, value) if is_number(value, int) else value
        if not isinstance(numbers, list | tuple) or not all(is_number(number, int) for number in numbers):
            refuse(TypeError, f"{self.name}: {what} should be an int or a list of two, but got {value!r}")
        if len(numbers) != 2 or min(numbers) < 1:
            refuse(ValueError, f"{self.name}: {what} should be positive, one or two numbers, but got {value!r}")
        return numbers[0], numbers[1]


class _Random(_Operation):
    """An operation that draws random numbers."""

    def __init__(self) -> None:
        self._generator = np.random.default_rng(config.seed_of_sampler())

    def _probability(self, prob: Any) -> float:
        if not is_number(prob, int, float):
            refuse(TypeError, f"Argument prob with value {prob} is not of type [<class 'float'>, <class 'int'>]")
        if not 0 <= prob <= 1:
            refuse(ValueError, f"Input prob is not within the required interval of [0.0, 1.0], but got {prob}.")
        return float(prob)


class Rescale(_Operation):
    """Return ``image * rescale + shift``, in float32."""

    def __init__(self, rescale: float, shift: float) -> None:
        for name, value in (("rescale", rescale), ("shift", shift)):
            if not is_number(value, int, float):
                refuse(TypeError, f"Argument {name} with value {value} is not of type [<class 'numbers.Number'>]")
        self.rescale, self.shift = np.float32(rescale), np.float32(shift)

    def __call__(self, image: Any) -> Image:
        """Return the changed array, of any shape."""
        return np.asarray(image).astype(np.float32) * self.rescale + self.shift

    _changed = __call__


class Normalize(_Operation):
    """Return ``(image - mean) / std`` per channel, in float32; channels are last with ``is_hwc``, and first without."""

    def __init__(self, mean: Sequence[float], std: Sequence[float], is_hwc: bool = True) -> None:
        if len(mean) != len(std):
            refuse(ValueError, "Length of mean and std must be equal.")
        if not all(0 <= value <= 255 for value in mean) or not all(0 < value <= 255 for value in std):
            refuse(ValueError, f"mean should be from 0 to 255, and std above 0, but got {mean} and {std}")
        if not isinstance(is_hwc, bool):
            refuse(TypeError, f"Argument is_hwc with value {is_hwc} is not of type [<class 'bool'>]")
        self.mean, self.std, self.is_hwc = np.array(mean, np.float32), np.array(std, np.float32), is_hwc

    def _changed(self, image: Image) -> Image:
        whole = image[..., None] if image.ndim == 2 else image
        channels = whole.shape[-1 if self.is_hwc else 0]
        if len(self.mean) not in (1, channels):
            refuse(RuntimeError, f"Normalize: the image has {channels} channels, and mean {len(self.mean)} numbers")
        shape = (-1,) if self.is_hwc else (-1, 1, 1)
        changed = (whole.astype(np.float32) - self.mean.reshape(shape)) / self.std.reshape(shape)
        return changed.reshape(image.shape)


class HWC2CHW(_Operation):
    """Move the channels to the first axis."""

    def _changed(self, image: Image) -> Image:
        return image if image.ndim == 2 else np.ascontiguousarray(image.transpose(2, 0, 1))


class ToTensor(_Operation):
    """Divide the image by 255, move the channels to the first axis, and convert it to a dtype."""

    def __init__(self, output_type: Any = np.float32) -> None:
        self.output_type = np.dtype(output_type)

    def _changed(self, image: Image) -> Image:
        whole = image[..., None] if image.ndim == 2 else image
        scaled = whole.astype(np.float32) / np.float32(255)
        return np.ascontiguousarray(scaled.transpose(2, 0, 1)).astype(self.output_type)


class Resize(_Operation):
    """Resize the image.

    Args:
        size: the height and width; or an int, the length of the shorter edge.
        interpolation: ``Inter.BILINEAR`` or ``Inter.NEAREST``.

    Raises:
        TypeError: ``size`` is neither an int nor a list of two, or ``interpolation`` is not an ``Inter``.
        ValueError: a number is not positive.
        NotImplementedError: any other interpolation.
    """

    def __init__(self, size: Any, interpolation: Inter = Inter.LINEAR) -> None:
        if not isinstance(interpolation, Inter):
            refuse(TypeError, f"Argument interpolation with value {interpolation} is not of type [<enum 'Inter'>]")
        if interpolation not in (Inter.LINEAR, Inter.NEAREST):
            refuse(NotImplementedError, f"Resize: interpolation is {interpolation.name}, should be BILINEAR or NEAREST")
        self._pair("size", size)
        self.size, self.interpolation = size, interpolation

    def _changed(self, image: Image) -> Image:
        height, width = self._wanted(*image.shape[:2])
        whole = image[..., None] if image.ndim == 2 else image
        resized = (bilinear if self.interpolation == Inter.LINEAR else nearest)(whole, height, width)
        return resized[..., 0] if image.ndim == 2 else resized

    def _wanted(self, height: int, width: int) -> tuple[int, int]:
        if not isinstance(self.size, int):
            return self.size[0], self.size[1]
        if height < width:
            return self.size, int(width * (self.size / height))
        return int(height * (self.size / width)), self.size


class CenterCrop(_Operation):
    """Crop the image to its centre; if it is smaller, pad it with zeros."""

    def __init__(self, size: Any) -> None:
        self.size = self._pair("size", size)

    def _changed(self, image: Image) -> Image:
        height, width = self.size
        missing = [max(wanted - length, 0) for wanted, length in zip(self.size, image.shape, strict=False)]
        edges = [(each - each // 2, each // 2) for each in missing] + [(0, 0)] * (image.ndim - 2)
        whole = np.pad(image, edges)
        top, left = (whole.shape[0] - height) // 2, (whole.shape[1] - width) // 2
        return whole[top : top + height, left : left + width]


class RandomCrop(_Random):
    """Crop the image at a random position.

    Args:
        size: the crop's height and width, or an int for both.
        padding: the pixels to add around the image first: an int, (left and right, top and bottom), or (left, top,
            right, bottom).
        pad_if_needed: whether an image that is still smaller is padded to the size.
        fill_value: the value of added pixels, or a tuple of three values, one per channel.
        padding_mode: ``Border.CONSTANT`` for ``fill_value``, or another way to extend the image.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range.
        RuntimeError: in a call, the image is smaller than the crop.
    """

    def __init__(
        self,
        size: Any,
        padding: Any = None,
        pad_if_needed: bool = False,
        fill_value: Any = 0,
        padding_mode: Border = Border.CONSTANT,
    ) -> None:
        super().__init__()
        self.size = self._pair("size", size)
        if not isinstance(padding_mode, Border):
            refuse(TypeError, f"Argument padding_mode with value {padding_mode} is not of type [<enum 'Border'>]")
        self._edges = self._around(padding)
        self.pad_if_needed, self.fill_value, self.padding_mode = pad_if_needed, fill_value, padding_mode

    def _around(self, padding: Any) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the padding above and below, and on the left and right."""
        numbers = padding if isinstance(padding, list | tuple) else [0 if padding is None else padding]
        if not all(is_number(number, int) for number in numbers):
            refuse(TypeError, f"RandomCrop: padding should be ints, but got {padding!r}")
        if len(numbers) not in (1, 2, 4) or min(numbers) < 0:
            refuse(
                ValueError, f"The size of the padding list or tuple should be 2 or 4, not negative, but got {padding!r}"
            )
        left, top, right, bottom = {1: [*numbers] * 4, 2: [*numbers] * 2, 4: [*numbers]}[len(numbers)]
        return (top, bottom), (left, right)

    def _padded(self, image: Image, edges: Sequence[tuple[int, int]]) -> Image:
        if self.padding_mode != Border.CONSTANT:
            return np.pad(image, [*edges, *[(0, 0)] * (image.ndim - 2)], self.padding_mode.value)
        values = np.broadcast_to(self.fill_value, image.shape[2:]).astype(image.dtype)
        (top, bottom), (left, right) = edges
        sizes = (image.shape[0] + top + bottom, image.shape[1] + left + right, *image.shape[2:])
        whole = np.broadcast_to(values, sizes).copy()
        whole[top : top + image.shape[0], left : left + image.shape[1]] = image
        return whole

    def _changed(self, image: Image) -> Image:
        whole = self._padded(image, self._edges)
        missing = [max(wanted - length, 0) for wanted, length in zip(self.size, whole.shape, strict=False)]
        if any(missing) and not self.pad_if_needed:
            text = f"the size {self.size} is greater than the image's, {whole.shape[:2]}"
            refuse(RuntimeError, f"RandomCrop: invalid crop size, {text}")
        whole = self._padded(whole, [(each, each) for each in missing]) if any(missing) else whole
        height, width = self.size
        top = int(self._generator.integers(whole.shape[0] - height + 1))
        left = int(self._generator.integers(whole.shape[1] - width + 1))
        return whole[top : top + height, left : left + width]


class RandomHorizontalFlip(_Random):
    """Flip the image from left to right with probability ``prob``."""

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__()
        self.prob = self._probability(prob)

    def _changed(self, image: Image) -> Image:
        return np.ascontiguousarray(image[:, ::-1]) if self._generator.random() < self.prob else image


class RandomVerticalFlip(_Random):
    """Flip the image from top to bottom with probability ``prob``."""

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__()
        self.prob = self._probability(prob)

    def _changed(self, image: Image) -> Image:
        return np.ascontiguousarray(image[::-1]) if self._generator.random() < self.prob else image
