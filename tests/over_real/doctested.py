"""Run TensorFlow's documented examples, on TensorFlow or its stand-in: ``python doctested.py EXAMPLES ANSWERS [AS]``.

An example is a docstring's interactive session, compared with the output that it shows, or a block of code, which must
run. CPUs replace the GPUs that they name.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

MODULES = (
    *("distribute/distribute_lib", "distribute/mirrored_strategy", "distribute/one_device_strategy"),
    *("distribute/collective_all_reduce_strategy", "distribute/values", "distribute/cross_device_ops"),
    *("distribute/collective_util", "distribute/reduce_util", "distribute/distribute_utils", "distribute/input_lib"),
    *("distribute/tpu_strategy", "distribute/cluster_resolver/cluster_resolver"),
    *("ops/variables", "ops/unconnected_gradients", "eager/backprop", "util/nest"),
)
_BLOCK = re.compile(r"```(?:python)?\n(.*?)```", re.DOTALL)
_LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
Step = tuple[str, str]


def examples(tensorflow: Path) -> dict[str, list[Step]]:
    """Return the source and the output of each step, by the example's location."""
    return dict(found for module in MODULES for found in _of_module(tensorflow / "python" / f"{module}.py", module))


def _of_module(path: Path, module: str) -> Iterator[tuple[str, list[Step]]]:
    if not path.exists():
        return
    for node in ast.walk(ast.parse(path.read_text())):
        text = ast.get_docstring(node) if isinstance(node, ast.FunctionDef | ast.ClassDef) else None
        steps = doctest.DocTestParser().get_examples(text or "")
        name = f"{module}:{getattr(node, 'lineno', 0)} {getattr(node, 'name', '')}"
        if steps:
            yield name, [(step.source, step.want) for step in steps]
        for number, block in enumerate(_BLOCK.findall(text or "")):
            if ">>>" not in block:
                yield f"{name} {number}", [(textwrap.dedent(block), "")]


def run_steps(steps: list[Step], names: dict[str, Any]) -> str:
    """Run the steps; return an empty string if each gives its shown output, else the first that did not."""
    for source, want in steps:
        code = re.sub("gpu:", "CPU:", source, flags=re.IGNORECASE)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                exec(compile(code, "example", "single" if want or code.count("\n") <= 1 else "exec"), names)
            except Exception as error:
                if not want.startswith("Traceback"):
                    return f"{code.strip()[:80]!r}: {type(error).__name__}: {str(error)[:200]}"
                continue
        shown = want.replace("GPU", "CPU")
        if want and not doctest.OutputChecker().check_output(shown, out.getvalue(), _LOOSE):
            return f"{code.strip()[:80]!r} gives {out.getvalue()!r}, should be {shown!r}"
    return ""


def _main(path: str, answers: str, stands_in: bool) -> None:
    with contextlib.ExitStack() as standing_in:
        if stands_in:
            import collshim

            standing_in.enter_context(collshim.stand_in("tensorflow"))
        import tensorflow as tf

        if not stands_in:
            devices = [tf.config.LogicalDeviceConfiguration()] * 2
            tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)
        asked = json.loads(Path(path).read_text())
        found = {name: run_steps(steps, {"tf": tf, "np": np, "__name__": "__main__"}) for name, steps in asked.items()}
    Path(answers).write_text(json.dumps(found))


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], len(sys.argv) > 3)
