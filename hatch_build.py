"""Packs the pages of the documentation, and the script of a report, for the wheel."""

from __future__ import annotations

import io
import lzma
import tarfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NOT_SHOWN = {"README.md", "agents.md"}
"""Pages that `fmapboard docs` does not show, or shows as the skill file."""


class CustomBuildHook(BuildHookInterface):
    """Adds ``fmapboard/_docs.tar.xz`` and the script of a report to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is built."""
        if version == "editable":
            return
        static = Path("fmapboard", "plugin", "static", "dist", "report.js")
        script = Path(self.directory) / "report.js.xz"
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_bytes(lzma.compress((Path(self.root) / "src" / static).read_bytes(), preset=9))
        build_data["force_include"][str(script)] = f"{static.as_posix()}.xz"
        docs = Path(self.root) / "docs"
        archive = Path(self.directory) / "_docs.tar.xz"
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
        for name in ("_docs.tar.xz", "report.js.xz"):
            (Path(self.directory) / name).unlink(missing_ok=True)
