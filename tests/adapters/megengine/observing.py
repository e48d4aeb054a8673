"""Results of expressions and programs as plain data, from the real MegEngine or from ``collshim.megengine``.

    python -m tests.adapters.megengine.observing megengine

runs the real one (1.13.0, Python 3.10, NumPy 1.23.5, setuptools below 75) and writes ``observed/*.json`` anew: each
expression that is a key there, and each program of ``layers``, ``programs``, ``reading`` and ``slopes``.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.adapters.megengine import layers, programs, reading, slopes

PROGRAMS = layers.ALL | programs.ALL | reading.ALL | slopes.ALL
OBSERVED = Path(__file__).parent / "observed"


def names(package: str) -> dict[str, Any]:
    """Return the names that an expression can use."""
    mge = importlib.import_module(package)
    functional, module = (importlib.import_module(f"{package}.{name}") for name in ("functional", "module"))
    tensor = mge.Tensor
    return {
        "F": functional,
        "M": module,
        "T": tensor,
        "mge": mge,
        "np": np,
        "x": tensor(np.arange(6.0).reshape(2, 3)),
        "i": tensor([1, -2, 3]),
        "h": tensor(np.array([1, 2, 3], "float16")),
        "u": tensor(np.array([1, 2, 250], "uint8")),
        "b": tensor([True, False, True]),
        "c": tensor(np.arange(24.0).reshape(2, 3, 4)),
    }


def describe(value: Any) -> Any:
    """Describe tensors by dtype, shape and numbers to four places; other values as they are, or by their text."""
    if isinstance(value, list | tuple):
        return [describe(part) for part in value]
    if isinstance(value, dict):
        return {key: describe(part) for key, part in value.items()}
    if hasattr(value, "numpy"):
        array = value.numpy()
        return [str(value.dtype), list(value.shape), array.astype("float64").round(4).reshape(-1).tolist()]
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), value.astype("float64").round(4).reshape(-1).tolist()]
    return value if isinstance(value, int | float | str | bool | None) else repr(value)


def observe(package: str, expression: str) -> Any:
    """Evaluate an expression; describe an exception by its built-in classes."""
    try:
        return describe(eval(expression, names(package)))
    except Exception as error:
        return {"raises": [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]}


def main(package: str) -> None:
    """Write the results of this package."""
    path = OBSERVED / "expressions.json"
    found = {expression: observe(package, expression) for expression in json.loads(path.read_text())}
    path.write_text(_lines(found))
    mge = importlib.import_module(package)
    (OBSERVED / "programs.json").write_text(
        _lines({name: describe(program(mge)) for name, program in PROGRAMS.items()})
    )


def _lines(found: dict[str, Any]) -> str:
    rows = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items())
    return "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    main(sys.argv[1])
