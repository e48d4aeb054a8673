"""``python -m collshim.conformance.report RUN.json ...``: keeps runs on real frameworks for docs/real-frameworks.md."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from collshim.conformance.report.outcomes import keep


def main(arguments: list[str]) -> int:
    """Keep the runs in these files; exit with 2 if a file has no run on a real framework."""
    parser = argparse.ArgumentParser(prog="python -m collshim.conformance.report", description=__doc__)
    parser.add_argument("run", nargs="+", type=Path, help="a file that `collshim conformance --real --json` wrote")
    for path in parser.parse_args(arguments).run:
        try:
            print(f"written: {keep(json.loads(path.read_text(encoding='utf-8')))}")
        except (OSError, ValueError) as error:
            parser.error(f"{path}: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
