"""Arrays of other installed libraries: the standard's reference, JAX, and CuPy without a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

from collshim.conformance import reference
from tests.engine.other_kinds import COLLECTIVES, DTYPES

pytestmark = pytest.mark.processes

LIBRARIES = ("array_api_strict", "jax")


@cache
def found_with(library: str) -> dict[str, Any]:
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    if library == "array_api_strict" and np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("NumPy before 2 takes DLPack's memory as read-only, and gives no such memory to others")
    command = [sys.executable, "-W", "ignore", "-m", "tests.engine.other_kinds", library]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("library", LIBRARIES)
def test_memory_is_shared_both_ways_in_every_dtype(library: str) -> None:
    numbers = np.arange(6).reshape(2, 3)
    wanted = {name: [f"torch.{name}", name, real_and_imaginary(numbers.astype(name)), True] for name in DTYPES}
    assert found_with(library)["round trips"] == wanted


def real_and_imaginary(numbers: np.ndarray[Any, Any]) -> Any:
    found = numbers.astype(np.complex64)
    return np.stack([found.real, found.imag], -1).tolist()


def wanted_of(name: str) -> list[Any]:
    """Return each rank's numbers, or None if a rank gets nothing."""
    parts = [np.full((2, 2), value, np.float32) for value in (1, 2)]
    lists = [[part, part] for part in parts]
    by_name: dict[str, Any] = {
        "all_gather_ragged": [parts[0][:1], parts[0][:1]],
        "scatter": [parts[0], parts[0]],
        "reduce_scatter": reference.reduce_scatter(lists),
        "all_to_all": [received[0] for received in reference.all_to_all(lists)],
        "ring": reference.ring(parts),
    }
    return list(by_name[name] if name in by_name else getattr(reference, name)(parts))


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_collective_returns_the_callers_kind(library: str, name: str) -> None:
    wanted = [None if part is None else [np.asarray(part).tolist(), True] for part in wanted_of(name)]
    assert [rank[name] for rank in found_with(library)["collectives"]] == wanted


def test_writable_array_is_an_output() -> None:
    assert found_with("array_api_strict")["written"] == [[], "", [5, 5, 5]]


def test_immutable_array_is_not_an_output() -> None:
    raised, text, values = found_with("jax")["written"]
    assert (raised, values) == (["ArgumentValueError"], [0, 0, 0])
    assert "output is a" in text


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU: tests/gpu has CuPy arrays that can be read")
def test_cupy_without_a_gpu_is_refused() -> None:
    known, raised, text = found_with("cupy")["without a GPU"]
    assert known
    assert raised == [["ArgumentTypeError"]] * 3
    assert "all_reduce: input is a ndarray that torch cannot take: cuda" in text


def test_array_libraries_are_not_imported() -> None:
    code = """
import importlib, sys
import numpy as np
import collshim
for name in ("torch.distributed", "oneflow", "mindspore.communication", "tensorflow", "megengine.functional"):
    importlib.import_module(f"collshim.{name}")
print(collshim.launch(lambda: collshim.current().communicator.all_reduce(np.ones(2)).wait().tolist(), 2))
print([name for name in ("cupy", "jax", "tensorflow", "array_api_strict", "ml_dtypes") if name in sys.modules])
"""
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.stdout.splitlines() == ["[[2.0, 2.0], [2.0, 2.0]]", "[]"], done.stderr[-2000:]
