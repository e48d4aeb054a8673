"""The picture of README.md: what ``collshim run`` prints if a rank's call differs from the others'."""

from __future__ import annotations

import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

EXAMPLES = Path(__file__).parent / "examples"
SCRIPT, RANKS, WIDTH = "uneven.py", 4, 108
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_STYLES = ((r"\[rank \d\]", "cyan"), (r"\w+\.errors\.\w+", "bold red"), (r"rank 3 has \(5,\)", "bold red"))


def mismatch_picture() -> str:
    """Return the picture as SVG: the script, and what rank 0 prints; the others print the same."""
    lines = _printed()
    file = StringIO()
    console = Console(record=True, width=WIDTH, file=file, force_terminal=True, color_system="truecolor")
    source = (EXAMPLES / SCRIPT).read_text(encoding="utf-8").rstrip()
    console.print(Text(f"$ cat {SCRIPT}", "bold"))
    console.print(Text(source, "bright_black"))
    console.print(Text(f"\n$ collshim run -n {RANKS} {SCRIPT}", "bold"))
    for line in [*lines, "..."]:
        text = Text(line)
        for pattern, style in _STYLES:
            text.highlight_regex(pattern, style)
        console.print(text)
    svg = console.export_svg(title="collshim", unique_id="mismatch")
    return _FONTS.sub("", svg) + "\n"  # fonts would be fetched from the network


def _printed() -> list[str]:
    words = [sys.executable, "-m", "collshim", "run", "-n", str(RANKS), SCRIPT]
    done = subprocess.run(words, cwd=EXAMPLES, capture_output=True, text=True, timeout=100, check=False)
    lines = [line for line in done.stderr.splitlines() if line.startswith("[rank 0] ")]
    if done.returncode != 1 or "MismatchError" not in done.stderr:
        raise RuntimeError(f"{SCRIPT} ended with exit code {done.returncode}, should fail:\n{done.stderr}")
    return [line for line in lines if line.strip(" ~^") != "[rank 0]"]  # Python 3.13 marks more of a call than 3.11
