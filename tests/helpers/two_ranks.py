"""Two gloo processes that run a script of ``tests/training/processes``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from local_servers import free_port
from warm_python import WarmPython

HERE = Path(__file__).parents[1] / "training" / "processes"


def run_ranks(script: str, folder: Path, *kinds: str, **environment: str) -> None:
    """Run two processes that each train with one half of the batches."""
    port = str(free_port())
    paths = os.pathsep.join([str(HERE), *filter(None, sys.path)])
    program = f"import runpy; runpy.run_path({str(HERE / script)!r}, run_name='__main__')"
    env = {**os.environ, "PYTHONPATH": paths, **environment}
    started = [WarmPython(program, str(rank), port, folder, *kinds, env=env) for rank in range(2)]
    try:
        for process in started:
            done = process.communicate(timeout=240)  # a deadlock ends here
            assert done.returncode == 0, done.stderr
    finally:
        for process in started:
            process.kill()
