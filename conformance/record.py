"""Records the behaviour of a real framework: ``python conformance/record.py oneflow``.

Run it with the interpreter of an environment that holds the real framework. It also needs NumPy and, from collshim,
only this file and the folder ``recorder``. It starts the ranks itself, with the framework's own launcher if there is
one, and writes ``recordings/<framework>-<version>/``.
"""

from __future__ import annotations

import argparse
import platform
import sys
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent


def alone() -> None:
    """Make ``collshim.conformance.recorder`` importable without executing any other module of collshim."""
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]  # its modules have plain names
    for name, folder in (("collshim", HERE.parent / "collshim"), ("collshim.conformance", HERE)):
        stand_in = ModuleType(name)
        stand_in.__path__ = [str(folder)]
        sys.modules[name] = stand_in


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    from collshim.conformance.recorder.catalogue import RECORDED

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("framework", choices=RECORDED)
    parser.add_argument("--out", type=Path, default=HERE / "recordings", help="folder to write into")
    parser.add_argument("--only", default="", help="record only calls with this text in their id, and keep the others")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 2, 3, 4], help="sizes of worlds")
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)  # a rank, started by this script
    return parser.parse_args()


def main() -> None:
    """Record, or answer as one of the ranks."""
    given = arguments()
    from collshim.conformance.recorder.jobs import answer

    if given.answer:
        answer(given.framework, given.answer)
    else:
        record_all(given)


def record_all(given: argparse.Namespace) -> None:
    """Make the calls to record, world by world, and write the answers after each world."""
    from collshim.conformance.recorder import recordings
    from collshim.conformance.recorder.catalogue import calls
    from collshim.conformance.recorder.dialects import dialect
    from collshim.conformance.recorder.jobs import record

    version = dialect(given.framework).version()
    folder = given.out / f"{given.framework}-{version}"
    every = calls(given.framework)
    asked = [one for one in every if one.size in given.sizes and given.only in one.id]
    for world, size in sorted({(one.world, one.size) for one in asked}):
        mine = [one for one in asked if (one.world, one.size) == (world, size)]
        found = record(given.framework, mine, sys.executable, Path(__file__).resolve(), tell)
        count = recordings.merge(folder, provenance(given.framework, version), found, every)
        tell(f"{count} recordings in {folder}")


def provenance(framework: str, version: str) -> dict[str, object]:
    """Return the provenance of the recordings."""
    from collshim.conformance.recorder.jobs import this_python

    return {
        "framework": framework,
        "version": version,
        "provenance": "recorded",
        "how": "the real framework on CPU, ranks as processes of one machine",
        "command": f"python conformance/record.py {framework}",
        "date": datetime.now(timezone.utc).date().isoformat(),
        "platform": f"{platform.system()} {platform.machine()}",
        **this_python(),
    }


def tell(line: str) -> None:
    """Print progress to stderr."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    alone()
    main()
