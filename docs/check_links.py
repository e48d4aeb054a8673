"""Check that the relative links of README.md and docs/ have a target, down to the heading that they name.

``python docs/check_links.py [root]`` prints each broken link and exits with 1 if there is one.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?^ {0,3}\1[`~]*\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
# [text](target "title"), ![text](target), and [name]: target on a line of its own.
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+[\"'][^)]*)?\)|^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$", re.MULTILINE)


def pages(root: Path) -> list[Path]:
    """Return README.md and the other pages of the root, and every page of docs/."""
    return sorted(root.glob("*.md")) + sorted((root / "docs").rglob("*.md"))


def links(page: Path) -> Iterator[str]:
    """Yield the targets of the page's links that stay in this project; links in code do not count."""
    text = CODE.sub("", FENCE.sub("", page.read_text(encoding="utf-8")))
    for match in LINK.finditer(text):
        target = match[1] or match[2]
        if not ELSEWHERE.match(target):
            yield unquote(target)


def anchors(page: Path) -> set[str]:
    """Return the names of the page's headings as GitHub forms them: lower case, hyphens, a number if repeated."""
    seen: Counter[str] = Counter()
    names = set()
    for match in HEADING.finditer(FENCE.sub("", page.read_text(encoding="utf-8"))):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1])
        name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        names.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return names


def leads_somewhere(page: Path, target: str) -> bool:
    """Return whether the file exists relative to the page and, if it is a page itself, has the heading."""
    path, _, anchor = target.partition("#")
    file = page.parent / path if path else page
    if not file.exists():
        return False
    return not anchor or file.suffix != ".md" or anchor in anchors(file)


def main(root: Path) -> int:
    """Print the broken links, and return the exit status."""
    broken = [
        f"{page.relative_to(root)}: {target}"
        for page in pages(root)
        for target in links(page)
        if not leads_somewhere(page, target)
    ]
    for line in broken:
        print(f"leads nowhere: {line}")
    print(f"{len(pages(root))} pages, {len(broken)} broken links")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]))
