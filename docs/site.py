"""Write the site's pages into ``build/pages``: those of docs/ and of the root, with the commands' help, links adjusted.

python docs/site.py

mkdocs and zensical build the site from that folder; neither needs any code of this project's.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = ROOT / "build" / "pages"
OF_THE_ROOT = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
_COPIED = ("*.svg", "*.css", "examples/*.py", "examples/*.ipynb")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]+)?\)")
_COLUMNS = 80
"""The number of columns that a page has room for."""

_HELP = re.compile(r"<!-- help: (\w+) -->")


def main() -> None:
    """Write all pages anew."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for path in DOCS.rglob("*.md"):
        _write(path, path.relative_to(DOCS))
    for name in OF_THE_ROOT:
        _write(ROOT / name, Path(name))
    for pattern in _COPIED:
        for path in DOCS.glob(pattern):
            target = PAGES / path.relative_to(DOCS)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def _write(path: Path, page: Path) -> None:
    """Write a page; links to pages stay links, and of a link to code the file's name is left."""
    text = _HELP.sub(lambda found: f"```text\n{_help(found[1])}\n```", path.read_text(encoding="utf-8"))
    text = _LINK.sub(lambda found: _adjusted(found, path.parent, page), text)
    target = PAGES / page
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


def _adjusted(found: re.Match[str], folder: Path, page: Path) -> str:
    text, target, anchor = found[1], found[2], found[3] or ""
    if re.match(r"[a-z]+:", target):
        return found[0]
    path = (folder / target).resolve()
    if path.parent == ROOT and path.name in OF_THE_ROOT:
        inside = path.name
    elif path == ROOT / "README.md":
        inside = "start.md"
    elif path.is_relative_to(DOCS) and path.suffix in (".md", ".py", ".svg", ".ipynb"):
        inside = str(path.relative_to(DOCS))
    elif path.is_relative_to(DOCS) and path.is_dir():
        inside = f"{path.relative_to(DOCS)}/index.md"
    else:
        name = f"`{path.relative_to(ROOT)}`"
        return text if text.startswith("`") else name if text == name.strip("`") else f"{text} ({name})"
    return f"[{text}]({os.path.relpath(inside, page.parent)}{anchor})"


def _help(command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "collshim", command, "--help"],
        cwd=ROOT,
        env=os.environ | {"COLUMNS": str(_COLUMNS)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.rstrip()


if __name__ == "__main__":
    main()
