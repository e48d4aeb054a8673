"""docs/check_links.py finds broken links, and this project has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.conftest import Run


def _page(folder: Path, text: str) -> None:
    (folder / "docs").mkdir()
    (folder / "docs" / "other.md").write_text("# A `title`, twice\n\n# A title, twice\n")
    (folder / "README.md").write_text(text)


@pytest.mark.parametrize(
    "link",
    [
        "[a](docs/missing.md)",
        "![a](docs/missing.png)",
        "[a](docs/other.md#no-such-heading)",
        "[a](#no-such-heading)",
        '[a](docs/missing.md "a title")',
        "[a]\n\n[a]: docs/missing.md",
    ],
)
def test_broken_link_is_named(python: Run, root: Path, tmp_path: Path, link: str) -> None:
    _page(tmp_path, f"# Here\n{link}\n")
    done = python(str(root / "docs" / "check_links.py"), str(tmp_path))
    assert done.returncode == 1
    assert "leads nowhere: README.md: " in done.stdout


@pytest.mark.parametrize(
    "link",
    [
        "[a](docs/other.md)",
        "[a](docs)",
        "[a](docs/other.md#a-title-twice)",
        "[a](docs/other.md#a-title-twice-1)",
        "[a](#here)",
        "[a](https://example.org/missing.md)",
        "`[a](docs/missing.md)`",
        "```\n[a](docs/missing.md)\n```",
    ],
)
def test_other_links_pass(python: Run, root: Path, tmp_path: Path, link: str) -> None:
    _page(tmp_path, f"# Here\n{link}\n")
    done = python(str(root / "docs" / "check_links.py"), str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "2 pages, 0 broken links\n")


def test_every_link_of_this_project_resolves(python: Run, root: Path) -> None:
    done = python(str(root / "docs" / "check_links.py"))
    assert done.returncode == 0, done.stdout
