"""An object that runs code when it is unpickled."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


class CreatesFolder:
    """Creates a folder when it is unpickled, which shows that code of the file was run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.folder),)
