"""``tf.test``: a ``unittest.TestCase`` that compares tensors. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

import re
import shutil
import tempfile
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from collshim.adapting.absent import saying
from collshim.tensorflow import structures
from collshim.tensorflow.config import list_physical_devices
from collshim.tensorflow.dtypes import as_dtype
from collshim.tensorflow.errors import OpError

__all__ = [
    "TestCase",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_built_with_xla",
    "is_gpu_available",
    "main",
]


class TestCase(unittest.TestCase):
    """A test case whose assertions take tensors, variables, arrays, numbers, and nests of them."""

    _folder: str | None = None

    def get_temp_dir(self) -> str:
        """Return the path of an empty folder of this test, which is removed after it."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp()
            self.addCleanup(shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder

    def evaluate(self, tensors: Any) -> Any:
        """Return a nest with NumPy's arrays and scalars in place of tensors and variables."""
        return structures.map_structure(lambda one: one.numpy() if hasattr(one, "numpy") else one, tensors)

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Require the same shape and the same elements; NaN equals NaN."""
        self.assertShapeEqual(_array(a), _array(b), msg)
        np.testing.assert_array_equal(_array(a), _array(b), msg or "")

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Require that shapes or elements differ."""
        if _array(a).shape == _array(b).shape and bool(np.all(_array(a) == _array(b))):
            self.fail(msg or "The two values are equal at all elements.")

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """Require nests of the same structure, whose elements differ by at most ``atol + rtol * |b|``."""
        if isinstance(a, dict):
            self.assertEqual(set(a), set(b), msg)
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, msg)
        elif isinstance(a, list | tuple) and _is_nest(a):
            self.assertEqual(len(a), len(b), msg)
            for one, other in zip(a, b, strict=True):
                self.assertAllClose(one, other, rtol, atol, msg)
        else:
            first, second = _array(a), _array(b)
            self.assertShapeEqual(first, second, msg)
            np.testing.assert_allclose(first, second, rtol, atol, err_msg=msg or "")

    def assertNotAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """Require that ``assertAllClose`` fails."""
        try:
            self.assertAllClose(a, b, rtol, atol)
        except AssertionError:
            return
        self.fail(msg or "The two values are close at all elements.")

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """Call ``assertAllClose`` with the tolerances of the coarser dtype."""
        limits = {
            "float32": (float_rtol, float_atol),
            "float16": (half_rtol, half_atol),
            "bfloat16": (bfloat16_rtol, bfloat16_atol),
        }
        for one in (a, b):
            relative, absolute = limits.get(_dtype_name(one), (rtol, atol))
            rtol, atol = max(rtol, relative), max(atol, absolute)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:
        """Require the same shape."""
        self.assertTupleEqual(tuple(input_a.shape), tuple(input_b.shape), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """Require a dtype."""
        self.assertEqual(_dtype_name(target), as_dtype(expected_dtype).name)

    def assertNear(self, f1: Any, f2: Any, err: float, msg: str | None = None) -> None:
        """Require two numbers that differ by at most ``err``."""
        self.assertTrue(f1 == f2 or abs(float(f1) - float(f2)) <= err, msg or f"{f1} != {f2} +/- {err}")

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: str | None = None) -> None:
        """Require two lists of numbers that differ by at most ``err``."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for one, other in zip(farray1, farray2, strict=True):
            self.assertNear(one, other, err, msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None) -> None:
        """Require arrays whose difference has a norm below ``err``."""
        self.assertLess(float(np.linalg.norm(_array(ndarray1) - _array(ndarray2))), err, msg)

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """Require that all elements are greater."""
        self.assertGreater(np.min(_array(a)), comparison_target)

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Require that all elements are less."""
        self.assertLess(np.max(_array(a)), comparison_target)

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """Require that all elements are greater or equal."""
        self.assertGreaterEqual(np.min(_array(a)), comparison_target)

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """Require that all elements are less or equal."""
        self.assertLessEqual(np.max(_array(a)), comparison_target)

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """Require that all elements are in a set."""
        self.assertLessEqual(set(_array(target).reshape(-1).tolist()), set(expected_set))

    def assertLen(self, container: Any, expected_len: int, msg: str | None = None) -> None:
        """Require a number of elements."""
        self.assertEqual(len(container), expected_len, msg)

    def assertEmpty(self, container: Any, msg: str | None = None) -> None:
        """Require that there are no elements."""
        self.assertLen(container, 0, msg)

    def assertNotEmpty(self, container: Any, msg: str | None = None) -> None:
        """Require that there are elements."""
        self.assertTrue(len(container), msg)

    def assertSameElements(self, expected_seq: Any, actual_seq: Any, msg: str | None = None) -> None:
        """Require the same set of elements."""
        self.assertEqual(set(expected_seq), set(actual_seq), msg)

    def assertStartsWith(self, actual: Any, expected_start: Any, msg: str | None = None) -> None:
        """Require a prefix."""
        self.assertTrue(actual.startswith(expected_start), msg or f"{actual!r} does not start with {expected_start!r}")

    @contextmanager
    def assertRaisesWithPredicateMatch(
        self, exception_type: Any, expected_err_re_or_predicate: str | Callable[[Any], Any]
    ) -> Iterator[None]:
        """Require an error in the block, for which a predicate holds or whose text matches a regular expression."""
        wanted = expected_err_re_or_predicate
        with self.assertRaises(exception_type) as caught:
            yield
        holds = wanted(caught.exception) if callable(wanted) else re.search(wanted, str(caught.exception))
        self.assertTrue(holds, f"the error {caught.exception!r} is not the expected one, {wanted}")

    def assertRaisesOpError(self, expected_err_re_or_predicate: str | Callable[[Any], Any]) -> Any:
        """Require one of ``tf.errors``; see ``assertRaisesWithPredicateMatch``."""
        return self.assertRaisesWithPredicateMatch(OpError, expected_err_re_or_predicate)


def main(argv: Any = None) -> None:
    """Run the tests of the module ``__main__``."""
    unittest.main(argv=argv)


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Return whether ``tf.config`` lists a GPU; the arguments have no effect."""
    return bool(list_physical_devices("GPU"))


def gpu_device_name() -> str:
    """Return the name of the first GPU, or "" if ``tf.config`` lists none."""
    return "/device:GPU:0" if is_gpu_available() else ""


def is_built_with_cuda() -> bool:
    """Return whether torch was built with CUDA."""
    return torch.version.cuda is not None


def is_built_with_rocm() -> bool:
    """Return whether torch was built with ROCm."""
    return torch.version.hip is not None


def is_built_with_gpu_support() -> bool:
    """Return whether torch was built for GPUs."""
    return is_built_with_cuda() or is_built_with_rocm()


def is_built_with_xla() -> bool:
    """Return False: nothing is compiled."""
    return False


def _array(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, list | tuple):
        return np.array([_array(one) for one in value])
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def _is_nest(value: Any) -> bool:
    """Return whether a list holds something else than numbers and lists of them."""
    if isinstance(value, list | tuple):
        return any(map(_is_nest, value))
    return not isinstance(value, int | float | complex | np.generic)


def _dtype_name(value: Any) -> str:
    return as_dtype(value.dtype if hasattr(value, "dtype") else _array(value).dtype).name


__getattr__ = saying(__name__, "use unittest and numpy.testing")
