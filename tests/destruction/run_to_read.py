"""A small run with everything that fmapboard writes, for the commands that read one."""

from __future__ import annotations

from pathlib import Path

from attempts import in_process

STEPS = 4


def written_run(run: Path) -> Path:
    """Write a run in another process, so that this one starts no threads."""

    def work() -> None:
        from two_layer_runs import log_steps

        log_steps(run, steps=range(STEPS), lr=0.01)

    ended = in_process(work, limit=300.0)
    if ended.code:
        raise RuntimeError(ended.errors)
    return run
