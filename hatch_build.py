"""Packs the pages of the documentation into one file of the wheel, in a third less space."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NOT_SHOWN = {"README.md", "agents.md"}
"""Pages that `fmapboard docs` does not show, or shows as the skill file."""


class CustomBuildHook(BuildHookInterface):
    """Adds ``fmapboard/_docs.tar.xz`` to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is built."""
        if version == "editable":
            return
        docs = Path(self.root) / "docs"
        archive = Path(self.directory) / "_docs.tar.xz"
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive, "w:xz", preset=9) as packed:
            for page in sorted(docs.rglob("*.md")):
                name = page.relative_to(docs).as_posix()
                if name not in NOT_SHOWN:
                    text = page.read_bytes()
                    entry = tarfile.TarInfo(name)
                    entry.size = len(text)
                    packed.addfile(entry, io.BytesIO(text))
        build_data["force_include"][str(archive)] = "fmapboard/_docs.tar.xz"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called after the wheel was built."""
        (Path(self.directory) / "_docs.tar.xz").unlink(missing_ok=True)
