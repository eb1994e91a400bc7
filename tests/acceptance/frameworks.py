"""A trainer of Lightning for the cases that need one."""

from __future__ import annotations

from pathlib import Path

import lightning.pytorch as pl


def trainer(place: Path, steps: int, callbacks: list[object], **options: object) -> pl.Trainer:
    return pl.Trainer(
        max_steps=steps,
        accelerator="cpu",
        default_root_dir=str(place),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=callbacks,
        **options,
    )
