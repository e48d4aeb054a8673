"""Put the compiled core into the wheel; for an editable installation, put it beside its source."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

sys.path.append(str(Path(__file__).parent))  # builds run this file by its path

from compile_core import FILE, FOLDER, IS_FREE_THREADED, ROOT, provide


class CoreHook(BuildHookInterface[BuilderConfig]):
    """Compiles the core before each wheel is written; without it, the wheel is pure Python."""

    _folder: TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the core, and change the wheel's content and tag.

        Raises:
            CompileError: see ``compile_core.provide``.
        """
        if version == "editable":
            provide(ROOT / FOLDER / FILE, self.app.display_warning)
            return
        self._folder = TemporaryDirectory(prefix="collshim-")
        core = Path(self._folder.name, FILE)
        if provide(core, self.app.display_warning):
            build_data["force_include"][str(core)] = f"{FOLDER}/{FILE}"
            build_data["pure_python"] = False
            build_data["tag"] = _tag()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary folder."""
        if self._folder is not None:
            self._folder.cleanup()


def _tag() -> str:
    """Return the wheel's tag, for any Linux: the file is compiled for this machine's C library."""
    own = next(tag for tag in sys_tags() if tag.platform.startswith("linux"))
    return str(own) if IS_FREE_THREADED else f"cp310-abi3-{own.platform}"
