"""Hooks of the site: add the pages of the root and the commands' help, and adjust links into the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OF_THE_ROOT = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]+)?\)")
_COLUMNS = 80
"""The number of columns that a page has room for."""

_HELP = re.compile(r"<!-- help: (\w+) -->")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the root."""
    from mkdocs.structure.files import File

    for name in OF_THE_ROOT:
        files.append(File.generated(config, name, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Insert the commands' help, and point links to pages of the site; if a link is to code, show the file's name."""
    here = Path(config["docs_dir"]) / page.file.src_uri
    folder = ROOT if page.file.src_uri in OF_THE_ROOT else here.parent
    text = _HELP.sub(lambda found: f"```text\n{_help(found[1])}\n```", markdown)
    return _LINK.sub(lambda found: _led(found, folder, Path(config["docs_dir"]), page.file.src_uri), text)


def _led(found: re.Match[str], folder: Path, docs: Path, source: str) -> str:
    text, target, anchor = found[1], found[2], found[3] or ""
    if re.match(r"[a-z]+:", target):
        return found[0]
    path = (folder / target).resolve()
    if path.parent == ROOT and path.name in OF_THE_ROOT:
        inside = path.name
    elif path == ROOT / "README.md":
        inside = "start.md"
    elif path.is_relative_to(docs) and path.suffix in (".md", ".py"):
        inside = str(path.relative_to(docs))
    elif path.is_relative_to(docs) and path.is_dir():
        inside = f"{path.relative_to(docs)}/index.md"
    else:
        name = f"`{path.relative_to(ROOT)}`"
        return text if text.startswith("`") else name if text == name.strip("`") else f"{text} ({name})"
    return f"[{text}]({os.path.relpath(inside, Path(source).parent)}{anchor})"


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
