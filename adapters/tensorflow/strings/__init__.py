"""``tf.strings``: functions of tensors of text. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from collshim.adapting.absent import saying
from collshim.errors import ArgumentValueError
from collshim.tensorflow.composites import RaggedTensor
from collshim.tensorflow.constants import constant, torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.printing import tensor_text
from collshim.tensorflow.string_tensor import StringTensor, boolean, of_texts, string_tensor
from collshim.tensorflow.tensor import Tensor, adopt, plain

__all__ = [
    "as_string",
    "bytes_split",
    "format",
    "join",
    "length",
    "lower",
    "reduce_join",
    "regex_full_match",
    "regex_replace",
    "split",
    "strip",
    "substr",
    "to_number",
    "upper",
]

_UNITS = ("BYTE", "UTF8_CHAR")


def _mapped(function: Callable[[bytes], bytes], input: Any) -> StringTensor:
    values = np.asarray(string_tensor(input))
    return of_texts([function(text) for text in values.flat], values.shape)


def length(input: Any, unit: str = "BYTE", name: str | None = None) -> Tensor:
    """Return the number of bytes, or of characters if ``unit`` is "UTF8_CHAR", int32."""
    _require_unit(unit)
    values = np.asarray(string_tensor(input))
    counts = [len(text if unit == "BYTE" else text.decode()) for text in values.flat]
    return adopt(torch.tensor(counts, dtype=torch.int32).reshape(values.shape))


def lower(input: Any, encoding: str = "", name: str | None = None) -> StringTensor:
    """Return the text in lower case; without ``encoding="utf-8"``, only the letters of ASCII change."""
    return _mapped(lambda text: text.decode().lower().encode() if encoding else text.lower(), input)


def upper(input: Any, encoding: str = "", name: str | None = None) -> StringTensor:
    """Return the text in upper case; without ``encoding="utf-8"``, only the letters of ASCII change."""
    return _mapped(lambda text: text.decode().upper().encode() if encoding else text.upper(), input)


def strip(input: Any, name: str | None = None) -> StringTensor:
    """Return the text without white space at its ends."""
    return _mapped(bytes.strip, input)


def join(inputs: Sequence[Any], separator: str = "", name: str | None = None) -> StringTensor:
    """Join corresponding elements of several tensors; a single text belongs to every element."""
    parts = np.broadcast_arrays(*[np.asarray(string_tensor(part)) for part in inputs])
    rows = zip(*[part.flat for part in parts], strict=True)
    return of_texts([separator.encode().join(texts) for texts in rows], parts[0].shape)


def reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: str = "", name: str | None = None
) -> StringTensor:
    """Join the elements along an axis, or all of them."""
    values = np.asarray(string_tensor(inputs))
    rows = values.reshape(1, -1) if axis is None else np.moveaxis(values, axis, -1)
    texts = [separator.encode().join(row) for row in rows.reshape(-1, rows.shape[-1])]
    if axis is None:
        return of_texts(texts, [1] * values.ndim if keepdims else [])
    found = np.asarray(of_texts(texts, rows.shape[:-1]))
    return StringTensor(np.expand_dims(found, axis) if keepdims else found)


def split(input: Any, sep: str | None = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """Return the words of one text in a tensor, or those of several in a ``RaggedTensor``."""
    return _split(input, lambda text: text.split(sep.encode() if sep else None, maxsplit))


def bytes_split(input: Any, name: str | None = None) -> Any:
    """Return the bytes of one text in a tensor, or those of several in a ``RaggedTensor``."""
    return _split(input, lambda text: [bytes([code]) for code in text])


def _split(input: Any, parts_of: Callable[[bytes], list[bytes]]) -> Any:
    values = np.asarray(string_tensor(input))
    if values.ndim > 1:
        raise ArgumentValueError(f"input has {values.ndim} axes, should have one at most")
    rows = [parts_of(text) for text in values.flat]
    words = of_texts([word for row in rows for word in row], [-1])
    return RaggedTensor(words, [len(row) for row in rows]) if values.ndim else words


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    """Return whether each text as a whole matches a regular expression."""
    values, compiled = np.asarray(string_tensor(input)), _compiled(pattern)
    found = [compiled.fullmatch(text) is not None for text in values.flat]
    return boolean(np.reshape(found, values.shape))


def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> StringTensor:
    """Replace all matches of a regular expression, or the first one; ``rewrite`` refers to groups as Python does."""
    compiled, text_of = _compiled(pattern), string_tensor(rewrite).numpy().replace(rb"\0", rb"\g<0>")
    return _mapped(lambda text: compiled.sub(text_of, text, 0 if replace_global else 1), input)


def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE", name: str | None = None) -> StringTensor:
    """Return the part of each text from ``pos`` on, of at most ``len`` bytes, or characters.

    Raises:
        InvalidArgumentError: a text has no such position.
    """
    _require_unit(unit)
    values, starts, counts = np.broadcast_arrays(
        np.asarray(string_tensor(input)), convert_to_tensor(pos).numpy(), convert_to_tensor(len).numpy()
    )
    given = zip(values.flat, starts.flat, counts.flat, strict=True)
    return of_texts([_part(text, int(start), int(count), unit) for text, start, count in given], values.shape)


def _part(text: bytes, start: int, count: int, unit: str) -> bytes:
    whole: Any = text if unit == "BYTE" else text.decode()
    size = len_of(whole)
    if not -size <= start <= size:
        raise invalid_argument(f"pos {start} out of range for string {text!r}")
    first = start + size if start < 0 else start
    part = whole[first : first + count]
    return part if isinstance(part, bytes) else part.encode()


len_of = len


def to_number(input: Any, out_type: Any = torch.float32, name: str | None = None) -> Tensor:
    """Return the numbers that the texts are.

    Raises:
        InvalidArgumentError: a text is not a number.
    """
    values, dtype = np.asarray(string_tensor(input)), torch_dtype(out_type)
    parse: Any = float if dtype.is_floating_point else int
    try:
        numbers = [parse(text) for text in values.flat]
    except ValueError as error:
        raise invalid_argument(f"StringToNumberOp could not correctly convert string: {error}") from error
    return adopt(torch.tensor(numbers, dtype=dtype).reshape(values.shape))


def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> StringTensor:
    """Return numbers as text; floats have ``precision`` decimals, by default 6."""
    if isinstance(input, StringTensor):
        return input
    numbers = plain(convert_to_tensor(input))
    kind = "e" if scientific else "g" if shortest else "f"
    decimals = "" if precision < 0 else f".{precision}"
    form = f"{fill}{'' if width < 0 else width}{decimals}{kind}" if numbers.is_floating_point() else f"{fill}{width}"
    texts = [_text(number, form if numbers.is_floating_point() or width > 0 else "") for number in numbers.flatten()]
    return string_tensor(texts, tuple(numbers.shape))


def _text(number: torch.Tensor, form: str) -> str:
    if number.dtype is torch.bool:
        return str(bool(number)).lower()
    return f"{number.item():{form}}"


def format(
    template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None
) -> StringTensor:
    """Return the template with the tensors' text, in TensorFlow's form, in the places of the placeholders.

    Raises:
        ValueError: the numbers of placeholders and of tensors differ.
    """
    values = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    pieces = template.split(placeholder)
    if len_of(pieces) != len_of(values) + 1:
        raise ArgumentValueError(
            f"The template expects {len_of(pieces) - 1} tensors, but the inputs only has {len_of(values)}. Please "
            "ensure the number of placeholders in template matches inputs length."
        )
    texts = [_shown(convert_to_tensor(value), summarize) for value in values]
    return string_tensor(pieces[0] + "".join(text + piece for text, piece in zip(texts, pieces[1:], strict=True)))


def _shown(value: Any, summarize: int) -> str:
    if isinstance(value, StringTensor):
        return str(constant(value)) if value.ndim else f'"{value.numpy().decode()}"'
    return tensor_text(plain(value).detach(), summarize)


def _compiled(pattern: Any) -> Any:
    try:
        return re.compile(string_tensor(pattern).numpy())
    except re.error as error:
        raise invalid_argument(f"Invalid pattern: {pattern!r}, error: {error}") from error


def _require_unit(unit: str) -> None:
    if unit not in _UNITS:
        raise ArgumentValueError(f"unit is {unit!r}, should be one of {_UNITS}")


__getattr__ = saying(__name__, "use Python's own strings")
