"""The simulated CUDA for Python: settings, reports, counts, and operations posted on its streams."""

from __future__ import annotations

import ctypes
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

LIBRARY = "libcudart.so.13"
_REPORT_SIZE = 1 << 12
_Call = ctypes.CFUNCTYPE(None, ctypes.c_long)


def is_there() -> bool:
    """Return whether torch's CUDA is the simulated one."""
    return _library() is not None


def _library() -> Any:
    if torch.version.cuda is None:
        return None
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:  # for example, torch found another release of CUDA
        return None
    if not hasattr(library, "model_enqueue"):
        return None
    library.model_count.restype = ctypes.c_long
    library.model_setting.restype = ctypes.c_double
    library.model_set.argtypes = [ctypes.c_char_p, ctypes.c_double]
    spans = ctypes.POINTER(ctypes.c_uint64)
    library.model_enqueue.argtypes = [
        *(ctypes.c_void_p, ctypes.c_int, _Call, ctypes.c_long, spans, ctypes.c_int, ctypes.c_int, ctypes.c_char_p)
    ]
    return library


_core = _library()
_numbers = itertools.count(1)
_steps: dict[int, tuple[Callable[[], object], bool]] = {}
_errors: list[str] = []


def reports() -> list[str]:
    """Return the findings since ``clear``: races, stuck waits, kernels that failed or are not modelled."""
    texts = list[str]()
    for number in range(_core.model_reports()):
        text = ctypes.create_string_buffer(_REPORT_SIZE)
        _core.model_report(number, text, _REPORT_SIZE)
        texts.append(text.value.decode())
    return [*texts, *_errors]


def clear() -> None:
    """Forget the reports, the counts, and which memory was touched."""
    _core.model_clear()
    _errors.clear()


def count(what: str) -> int:
    """Return a count since ``clear``: ``communicators`` made, ``launches`` of NCCL, its ``aborts``.

    ``communicators of at most 4 CTAs`` are counted too.
    """
    return int(_core.model_count(what.encode()))


def set_always(name: str, value: float) -> None:
    """Change a setting of the README's table."""
    _core.model_set(name.encode(), value)


@contextmanager
def setting(name: str, value: float) -> Iterator[None]:
    """Apply ``set_always`` for a block of code."""
    before = _core.model_setting(name.encode())
    set_always(name, value)
    try:
        yield
    finally:
        set_always(name, before)


def stop() -> None:
    """Stop the device: it must not call Python while the interpreter ends."""
    _core.model_stop()


def synchronize_all() -> None:
    """Wait for every device."""
    for device in range(torch.cuda.device_count()):
        torch.cuda.synchronize(device)


def _come_to(number: int) -> None:
    """Run one of Python's operations when the device reaches it."""
    step, is_captured = _steps[number]
    if not is_captured:
        del _steps[number]
    try:
        with torch.no_grad():
            step()
    except BaseException as error:
        _errors.append(f"KERNEL: {type(error).__name__}: {error}")
        print(f"[CUDA model] {_errors[-1]}", file=sys.stderr)


_call = _Call(_come_to)


def enqueue(
    device: torch.device, step: Callable[[], object], reads: Sequence[Tensor], writes: Sequence[Tensor], label: str
) -> None:
    """Post ``step`` on the current stream of ``device``; it reads and writes the memory of these tensors."""
    stream = torch.cuda.current_stream(device)
    number = next(_numbers)
    _steps[number] = (step, torch.cuda.is_current_stream_capturing())
    spans = [end for tensor in (*reads, *writes) for end in _span(tensor)]
    given = (ctypes.c_uint64 * max(1, len(spans)))(*spans)
    index = 0 if device.index is None else device.index
    _core.model_enqueue(stream.cuda_stream, index, _call, number, given, len(reads), len(writes), label.encode())


def _span(tensor: Tensor) -> tuple[int, int]:
    """Return the first and last address of a tensor's memory."""
    if tensor.numel() == 0:
        return 0, 0
    width = tensor.element_size()
    begin = tensor.untyped_storage().data_ptr() + int(tensor.storage_offset()) * width
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return begin, begin + (reach + 1) * width
