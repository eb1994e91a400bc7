"""TensorBoard keeps its default number of pictures if no run has feature maps."""

from __future__ import annotations

import builtins
import os
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from event_files import foreign, write
from torch import nn
from torch.utils.tensorboard import SummaryWriter

import fmapboard
from fmapboard.plugin.loader import FeatureMapsLoader
from fmapboard.plugin.log_scan import has_only_foreign_runs


def kept(**flags: Any) -> dict[str, int]:
    given = Namespace(samples_per_plugin={}, **flags)
    FeatureMapsLoader().fix_flags(given)
    found: dict[str, int] = given.samples_per_plugin
    return found


def test_a_directory_of_other_runs_keeps_tensorboards_own_numbers(tmp_path: Path) -> None:
    foreign(tmp_path / "a" / "b")
    assert kept(logdir=str(tmp_path)) == {}
    assert kept(logdir="", logdir_spec=f"mine:{tmp_path}") == {}
    given = Namespace(samples_per_plugin={"images": 200}, logdir=str(tmp_path))
    FeatureMapsLoader().fix_flags(given)
    assert given.samples_per_plugin == {"images": 200, "feature_maps": 200}


@pytest.mark.parametrize("found", ["nothing", "no directory", "no event files"])
def test_a_directory_without_runs_keeps_50_steps(found: str, tmp_path: Path) -> None:
    if found == "no event files":
        (tmp_path / "notes.txt").write_text("feature_maps_")
    where = tmp_path / "later" if found == "no directory" else tmp_path
    assert kept(logdir=str(where)) == {"images": 50, "feature_maps": 50}


def test_one_run_of_fmapboard_among_others_is_enough(tmp_path: Path) -> None:
    foreign(tmp_path / "theirs")
    write(tmp_path / "deep" / "down" / "ours", 0)
    assert kept(logdir=str(tmp_path)) == {"images": 50, "feature_maps": 50}
    assert kept(logdir_spec=f"a:{tmp_path / 'theirs'},b:{tmp_path / 'deep'}") != {}
    assert kept(logdir_spec=str(tmp_path / "deep")) != {}


def test_a_run_through_a_summary_writer_is_recognized(tmp_path: Path) -> None:
    foreign(tmp_path)
    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", 0.5, 0)
        model = nn.Conv2d(1, 1, 1)
        with fmapboard.watch(model, writer=writer, every=1) as board, board.step(0):
            model(torch.zeros(1, 1, 4, 4))
    assert not has_only_foreign_runs([str(tmp_path)])


def test_a_remote_directory_counts_as_foreign() -> None:
    assert kept(logdir="gs://bucket/runs") == {}
    assert kept(logdir_spec="a:gs://bucket/runs") == {}


def test_links_are_followed_and_cycles_are_visited_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "ours", 0)
    foreign(tmp_path / "logs" / "theirs")
    (tmp_path / "logs" / "up").symlink_to(tmp_path / "logs")
    opened: list[str] = []

    def recorded(file: Any, *args: Any, **options: Any) -> Any:
        opened.append(str(file))
        return builtins_open(file, *args, **options)

    builtins_open = builtins.open
    with monkeypatch.context() as patches:
        patches.setattr(builtins, "open", recorded)
        assert has_only_foreign_runs([str(tmp_path / "logs")])
    assert len([file for file in opened if "tfevents" in file]) == 1
    (tmp_path / "logs" / "link").symlink_to(tmp_path / "ours")
    assert not has_only_foreign_runs([str(tmp_path / "logs")])


def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    foreign(tmp_path)
    os.mkfifo(tmp_path / "events.out.tfevents.0")
    assert has_only_foreign_runs([str(tmp_path)])
