"""A separate environment for the simulated CUDA: torch's wheel for CUDA, without NVIDIA's libraries.

pip uses its own configuration. ``===`` selects torch's release as published for CUDA, and not a build for the CPU with
the same number and a longer name. NVIDIA's libraries, some gigabytes, are not installed: the model and its stand-ins
replace them; only headers come from a wheel of NVIDIA's.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import Distribution
from pathlib import Path

from tests.cuda_model.build import SOURCES, build
from tests.environments import ROOT, CannotBeMadeError

_MADE_FOR = "2.13.0"

TORCH = os.environ.get("MODEL_TORCH", _MADE_FOR)
"""The release of torch that is run."""

FOLDER = ROOT / (".venv-gpu-model" if TORCH == _MADE_FOR else f".venv-gpu-model-{TORCH}")
LIBRARIES = FOLDER / "model"

_INSTALLED = FOLDER / ".installed"
"""The file with the release of the installed torch."""

_TOOLS = ("gcc", "g++", "nm", "readelf")
_BESIDE_TORCH = ("numpy", "pytest", "pytest-timeout", "pytest-xdist", "hypothesis")
_FOR_OTHER_TESTS = ("array-api-strict", "cloudpickle", "ml_dtypes")
_HEADERS = ("nvidia-cuda-runtime", "nvidia-cuda-crt")
_TOLD = 3
"""The number of pip's last lines in an error."""


def python() -> Path:
    """Return the environment's interpreter."""
    return FOLDER / "bin" / "python"


def make() -> None:
    """Make the environment and build the model, unless that was done before."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise CannotBeMadeError(f"{', '.join(missing)} not found: the model is built from C++")
    if sys.platform != "linux":
        raise CannotBeMadeError(f"torch is published with CUDA for Linux, not for {sys.platform}")
    if not _INSTALLED.exists() or _INSTALLED.read_text(encoding="utf-8") != TORCH:
        _install()
    newest = max(path.stat().st_mtime for path in (*SOURCES.iterdir(), Path(__file__).with_name("build.py")))
    built = LIBRARIES / ".built"
    if not built.exists() or built.stat().st_mtime < newest:
        print("building the model", flush=True)
        build(_torch(), FOLDER / "include", LIBRARIES)
        built.touch()


def install_collshim() -> None:
    """Install this checkout, for the entry points that torch reads, and what the tests that need no GPU import."""
    _pip("install", "--no-deps", "--editable", str(ROOT))
    _pip("install", "--constraint", str(ROOT / "constraints.txt"), "--no-deps", *_FOR_OTHER_TESTS)


def _install() -> None:
    print(f"making {FOLDER.name} (a download of 530 MB, a few minutes)", flush=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(FOLDER)], check=True)
    _pip("install", "--no-deps", f"torch==={TORCH}")
    requires = _requires()
    _pip("install", "--constraint", str(ROOT / "constraints.txt"), *_BESIDE_TORCH, *_python_alone(requires))
    with tempfile.TemporaryDirectory() as folder:
        _pip("download", "--no-deps", "--dest", folder, *(f"{name}=={_cuda(requires)}" for name in _HEADERS))
        _unpack_headers(Path(folder))
    _INSTALLED.write_text(TORCH, encoding="utf-8")


def _pip(*arguments: str) -> None:
    command = [str(python()), "-m", "pip", arguments[0], "--quiet", "--disable-pip-version-check", *arguments[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        told = "; ".join(done.stderr.strip().splitlines()[-_TOLD:])
        raise CannotBeMadeError(f"pip {arguments[0]} {arguments[-1]} failed: {told}")


def _torch() -> Path:
    return next(FOLDER.glob("lib/python3*/site-packages/torch"))


def _requires() -> list[str]:
    """Return the requirements of torch's wheel; raise an error if it is a build without CUDA."""
    info = next(FOLDER.glob("lib/python3*/site-packages/torch-*.dist-info"))
    requires = Distribution.at(info).requires or []
    if not any(line.startswith(("cuda-", "nvidia-")) for line in requires):
        raise CannotBeMadeError(f"the torch {TORCH} that pip found here is a build without CUDA")
    return requires


def _python_alone(requires: list[str]) -> list[str]:
    """Return the requirements for every system: NVIDIA's libraries, and Triton, are marked for Linux."""
    return [line for line in requires if ";" not in line]


def _cuda(requires: list[str]) -> str:
    """Return the release of CUDA that torch was built for, any patch of it."""
    found = re.search(r"cuda-toolkit\S*==(\d+\.\d+)", " ".join(requires))
    if found is None:
        raise CannotBeMadeError(f"torch {TORCH} does not say for which CUDA it was built")
    return f"{found[1]}.*"


def _unpack_headers(wheels: Path) -> None:
    """Unpack the wheels' ``.../include/`` into the environment's ``include``."""
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                _, found, inside = name.partition("/include/")
                if found and inside and not inside.endswith("/"):
                    target = FOLDER / "include" / inside
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(archive.read(name))
