"""``fmapboard run`` on every rank, as torchrun and ``accelerate launch`` start it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from local_servers import free_port

SCRIPT = Path(__file__).with_name("unedited_ranks.py")


def ranks(*command: str) -> list[tuple[str, str]]:
    """Output, and lines of ours, of two processes with what torchrun sets in their environment."""
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    started = []
    for rank in ("0", "1"):
        environment = {**os.environ, **common, "RANK": rank, "LOCAL_RANK": rank}
        process = subprocess.Popen(
            [sys.executable, *command, str(SCRIPT)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        started.append(process)
    found = []
    for process in started:
        output, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors
        found.append((output, errors))
    return found


@pytest.mark.sweep
def test_both_ranks_train_as_without_it_and_the_first_one_logs_and_rehearses(
    tmp_path: Path,
) -> None:
    run = str(tmp_path / "run")
    plain = ranks()
    watched = ranks("-m", "fmapboard", "run", "--rehearse", "--every", "2", "--logdir", run)
    assert [output for output, _ in watched] == [output for output, _ in plain]
    assert "fmapboard: watching Sequential, trained by SGD: 1 layers" in watched[0][1]
    assert f"not known: {run} (2 layers × 3 steps, the last one 4)" in watched[0][1]
    assert watched[0][1].count("Do images mix?") == 1
    assert "fmapboard" not in watched[1][1]
