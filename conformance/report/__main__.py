"""``python -m collshim.conformance.report RUN.json ...``: keep runs on real frameworks for docs/real-frameworks.md."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from collshim.conformance.report.outcomes import keep


def main(paths: list[str]) -> int:
    """Keep the runs in these files, which ``collshim conformance --real --json`` wrote."""
    for path in paths:
        print(f"written: {keep(json.loads(Path(path).read_text(encoding='utf-8')))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
