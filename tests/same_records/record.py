"""Writes a digest of everything that fmapboard logs in a fixed set of seeded runs.

    PYTHONPATH=src python tests/same_records/record.py OUT.json [RUN ...]

`compare.py` compares two digests; ``.ci/same_records REV`` records a commit and the working tree
and compares them. With names of runs only those are recorded.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from commands import COMMANDS, extractions, run_command
from digest import digest_directory
from loops import TRAININGS

import fmapboard


def record(names: list[str]) -> dict[str, Any]:
    """Run name -> what it printed or returned, and what it left on disk."""
    found = {}
    for name in names:
        began = time.perf_counter()
        run = Path(tempfile.gettempdir()) / "fmapboard_same_records"  # some texts name it
        run.mkdir()
        try:
            result = _make(name, run)
            found[name] = {"result": result, **digest_directory(run)}
        finally:
            shutil.rmtree(run)
        print(f"{name}: {time.perf_counter() - began:.1f} s", file=sys.stderr)
    return found


def _make(name: str, run: Path) -> Any:
    torch.manual_seed(0)
    if name in COMMANDS:
        return run_command(name, run)
    if name == "extractions":
        return extractions(run)
    TRAININGS[name](run)
    return None


def main() -> None:
    out, *chosen = sys.argv[1:]
    os.environ["FMAPBOARD_ON_ERROR"] = "raise"  # errors of fmapboard end the recording
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.getLogger("fmapboard").setLevel(logging.ERROR)
    print(f"fmapboard of {Path(str(fmapboard.__file__)).parent}", file=sys.stderr)
    found = record(chosen or [*TRAININGS, *COMMANDS, "extractions"])
    Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
