"""The versions of a real framework, of Python and of NumPy, as reported by the framework's interpreter."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from collshim import ArgumentValueError

_SECONDS = 120.0  # some frameworks take long to import
_SCRIPT = """
import sys, json, platform, importlib.util
spec = importlib.util.spec_from_file_location("collshim_record", sys.argv[1])
record = importlib.util.module_from_spec(spec)
spec.loader.exec_module(record)
record.alone()
import numpy
from collshim.conformance.recorder.dialects import dialect
versions = {"version": dialect(sys.argv[2]).version(), "python": platform.python_version(), "numpy": numpy.__version__}
print("versions:" + json.dumps(versions))
"""


def version(framework: str, python: str) -> dict[str, Any]:
    """Return the versions of the framework, of Python and of NumPy.

    Raises:
        ArgumentValueError: the interpreter does not run, or does not have the framework.
    """
    script = Path(__file__).resolve().parent.parent / "record.py"
    try:
        command = [python, "-c", _SCRIPT, str(script), framework]
        process = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, cwd="/")
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ArgumentValueError(f"--python is {python}, which does not run: {error}") from error
    line = next((line for line in process.stdout.splitlines() if line.startswith("versions:")), None)
    if line is None:
        last_line = (process.stderr.strip().splitlines() or ["it prints nothing"])[-1]
        raise ArgumentValueError(f"--python is {python}, should be an interpreter that has {framework}: {last_line}")
    versions: dict[str, Any] = json.loads(line.removeprefix("versions:"))
    return versions
