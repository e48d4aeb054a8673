"""Record the real MindSpore's numbers: ``python -m tests.adapters.mindspore.beside_real.record`` with MindSpore 2.10.0.

It needs an environment with MindSpore and nothing of collshim, and writes ``recorded.npz`` beside this file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.adapters.mindspore.beside_real.layers import cases

RECORDED = Path(__file__).with_name("recorded.npz")


def found(ms: Any) -> dict[str, Any]:
    """Return the arrays of all cases, by the case's name and their own."""
    arrays = {}
    for case, function in cases():
        for name, value in function(ms).items():
            arrays[f"{case} | {name}"] = np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value)
    return arrays


if __name__ == "__main__":
    import mindspore

    if mindspore.__version__ != "2.10.0":
        raise SystemExit(f"this is MindSpore {mindspore.__version__}; the recordings are those of 2.10.0")
    np.savez_compressed(RECORDED, **found(mindspore))
