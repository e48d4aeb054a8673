"""Build the simulated libraries that torch's CUDA wheel is linked to.

``libcudart`` and ``libnccl`` are the model. ``libcuda`` answers a few queries. The others, such as cuBLAS, are
stand-ins: they define the functions that torch imports, which end the process with their name if called. So do the
functions of ``libcudart`` and ``libnccl`` that are not modelled.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "runtime"

_CUDART = ("settings.cpp", "streams.cpp", "memory.cpp", "graphs.cpp", "device.cpp")
_NCCL = ("nccl.cpp", "nccl_arithmetic.cpp")
_TORCH = ("torch_cuda", "c10_cuda", "torch_python", "torch_cpu", "torch_nvshmem", "torch_cuda_linalg")
_UNVERSIONED = {
    "libcufile": "cuFile",
    "libcurand": "curand",
    "libcusparseLt": "cusparseLt",
    "libnvshmem_host": "nvshmem",
    "libnccl": "nccl",
    "libcuda": "cu[A-Z]",
}
"""Prefixes of functions that torch imports without a library name."""

_MISSING = """#include <stdio.h>
#include <stdlib.h>
static void missing(const char *name) { fprintf(stderr, "[CUDA model] not modelled: %s\\n", name); abort(); }
"""
_FLAGS = ("-std=c++17", "-O2", "-w", "-fPIC", "-D__CUDA_FP16_H__", "-D__CUDA_BF16_H__", "-D__CUDA_FP8_H__")


def build(torch_folder: Path, headers: Path, out: Path) -> None:
    """Build the libraries for the torch in ``torch_folder`` in ``out``; ``headers`` has those of the CUDA runtime."""
    out.mkdir(parents=True, exist_ok=True)
    wanted = _wanted(torch_folder / "lib")
    includes = [f"-I{headers}"]
    for library in sorted(_needed(torch_folder / "lib") | {"libcuda.so.1"}):
        names = _names(library, wanted)
        if library.startswith("libcudart."):
            _link(out, library, _compiled(out, _CUDART, includes), names, library)
        elif library.startswith("libnccl."):
            _link(out, library, [*_compiled(out, _NCCL, includes), str(out / _of(out, "libcudart."))], names)
        elif library.startswith("libcuda."):
            _link(out, library, _compiled(out, ("driver.c",), includes), names)
        else:
            version = "NVSHMEM" if "nvshmem" in library else library
            _link(out, library, [], names, version if version in wanted else "")


def _of(out: Path, start: str) -> str:
    beside = (".c", ".map", ".o")  # files that the library was made of, which are in the same folder
    return next(path.name for path in out.glob(f"{start}*") if path.suffix not in beside)


def _read(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _libraries(folder: Path) -> list[Path]:
    return [path for name in _TORCH if (path := folder / f"lib{name}.so").exists()]


def _needed(folder: Path) -> set[str]:
    """Return the libraries that are neither torch's nor the system's."""
    text = "".join(_read("readelf", "-d", str(path)) for path in _libraries(folder))
    names = set(re.findall(r"\(NEEDED\).*\[(lib(?:cu|nv|nccl)\w*\.so[.\d]*)\]", text))
    return {name for name in names if not (folder / name).exists()}


def _wanted(folder: Path) -> dict[str, set[str]]:
    """Return the functions that torch imports, by version; "" for those without one."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in _libraries(folder):
        for line in _read("nm", "-D", "--undefined-only", str(path)).splitlines():
            name, _, version = line.split()[-1].partition("@")
            found[version.lstrip("@")].add(name)
    return found


def _names(library: str, wanted: dict[str, set[str]]) -> set[str]:
    stem = library.partition(".")[0]
    names = set(wanted.get("NVSHMEM" if "nvshmem" in library else library, ()))
    start = _UNVERSIONED.get(stem)
    return names | {name for name in wanted[""] if start and re.match(f"{start}", name)}


def _compiled(out: Path, sources: Iterable[str], includes: Sequence[str]) -> list[str]:
    """Compile the sources and return the object files."""
    made: list[str] = []
    for source in sources:
        target = str(out / f"{source}.o")
        flags = _FLAGS if source.endswith(".cpp") else ("-w", "-fPIC")
        _run("g++" if source.endswith(".cpp") else "gcc", "-c", *flags, *includes, str(SOURCES / source), "-o", target)
        made.append(target)
    return made


def _link(out: Path, library: str, parts: Sequence[str], names: set[str], version: str = "") -> None:
    """Link a library of these parts, and of stand-ins for the functions that they lack."""
    objects = [part for part in parts if part.endswith(".o")]
    have = set(re.findall(r" [TW] (\w+)", _read("nm", *objects))) if objects else set[str]()
    stand_ins = out / f"{library}.c"
    lines = [f'void {name}(void) {{ missing("{name}"); }}' for name in sorted(names - have)]
    stand_ins.write_text("\n".join([_MISSING, *lines, ""]), encoding="utf-8")
    _run("gcc", "-c", "-w", "-fPIC", str(stand_ins), "-o", str(out / f"{library}.o"))
    options = [f"-Wl,-soname,{library}", "-lpthread"]
    if version:
        script = out / f"{library}.map"
        script.write_text(f"{version} {{ global: *; }};\n", encoding="utf-8")
        options.append(f"-Wl,--version-script={script}")
    _run("g++", "-shared", "-o", str(out / library), str(out / f"{library}.o"), *parts, *options)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
