"""What the tab, the checks and reports say of a run whose steps are images or checkpoints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from image_runs import NAMES, half_dead
from PIL import Image
from tab_answers import array_of, unpacked
from tab_client import Tab, open_tab

import fmapboard
from fmapboard.checks import DeadCheck, run_checks
from fmapboard.cli.main import run_visualize
from fmapboard.formats.overview import parsed_source
from fmapboard.health.read_runs import read_runs
from fmapboard.health.states import MOSTLY_DEAD, OFF
from fmapboard.plugin.stored_record import channel_codes
from fmapboard.report.write import OF_IMAGES, PRIVACY, write_report


@pytest.fixture(scope="module")
def tab(image_runs: Path) -> Tab:
    return open_tab(image_runs)


def test_a_step_of_images_is_named_after_the_file(tab: Tab) -> None:
    words = {str(step): f"image {step} ({name})" for step, name in enumerate(NAMES)}
    assert tab.ask("data/layers", run="images")["step_words"] == words
    assert tab.open("data/health", run="images")[0]["step_words"] == words


def test_nothing_lasts_from_one_image_to_the_next(tab: Tab, image_runs: Path) -> None:
    assert tab.open("data/health", run="images")[0]["since"] == {}
    found = [one["message"] for one in tab.ask("data/findings", run="images")["findings"]]
    (run,) = read_runs(image_runs)
    record = run.records[0]
    said = [one.text for one in run_checks(record).findings]
    (dead,) = DeadCheck(share_at_start=0.5)(record)
    assert dead.message == "50 % of 8 channels off in `0` (after `1`) for images 0 to 3"
    assert dead.meaning.startswith("These channels are 0 everywhere in each of these images")
    assert dead.advice == ""
    for text in (*found, *said, dead.text):
        assert "since step" not in text
        assert "at step" not in text


def test_channels_that_are_0_for_an_image_are_off_which_is_no_fault(tab: Tab) -> None:
    facts, body = tab.open("data/health", run="images")
    codes = array_of(facts["codes"], body)
    assert codes[:3, :2].tolist() == [[OFF, OFF]] * 3  # the convolution and its ReLU
    assert facts["states"][OFF]["word"] == "≥ 10 % off"
    assert facts["severe"] == {"0": "large", "1": "large", "2": "large"}  # for the last image
    facts, body = tab.open("data/health_step", run="images", step=0)
    assert array_of(facts["codes"], body)[:2].tolist() == [OFF, OFF]
    facts, body = tab.open("data/maps", run="images", key="fmapboard/0", step=0)
    assert unpacked(facts["arrays"], body)["feature_maps.code"].tolist() == [OFF, 1] * 4
    facts, body = tab.open("data/history", run="images", key="fmapboard/0")
    assert unpacked(facts["arrays"], body)["feature_maps.code"][:3].tolist() == [[OFF, 1] * 4] * 3
    assert facts["shown"] % 2 == 1  # one that is not off


def test_a_channel_that_is_0_for_an_image_is_off_and_not_constant() -> None:
    one = np.ones(1)
    numbers = {"minimum": 0 * one, "maximum": 0 * one, "constant": one, "dead": one}
    assert channel_codes(numbers, is_of_images=True).tolist() == [OFF]
    assert channel_codes(numbers, is_of_images=False).tolist() == [MOSTLY_DEAD]


def test_magnitudes_of_different_images_are_not_a_growth(image_runs: Path) -> None:
    (run,) = read_runs(image_runs)
    table = run.records[0].layers()
    assert table.columns["maximum"][-1, 0] > 3000 * table.columns["maximum"][0, 0]
    assert "exploding" not in {one.kind for one in run_checks(run.records[0]).findings}


def test_a_report_of_images_does_not_say_that_it_contains_training_images(
    image_runs: Path, tmp_path: Path
) -> None:
    model = half_dead()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, tmp_path / "training", optimizer=optimizer, every=1):
        model(torch.rand(1, 3, 40, 40)).mean().backward()
        optimizer.step()
    images = write_report([image_runs / "images"], tmp_path / "images.html")
    assert images.privacy == OF_IMAGES
    both = write_report([image_runs / "images", tmp_path / "training"], tmp_path / "both.html")
    assert both.privacy == PRIVACY


def test_a_step_of_checkpoints_is_named_after_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "named_nets.py").write_text(
        "from torch import nn\ndef build():\n"
        "    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    Image.new("RGB", (40, 40)).save(tmp_path / "ant.png")
    for step in (5, 20):
        torch.save(half_dead().state_dict(), tmp_path / f"ckpt_{step}.pt")
    with pytest.raises(SystemExit) as ended:
        run_visualize(
            ["--model", "named_nets:build", "--checkpoint", str(tmp_path / "ckpt_*.pt"),
             str(tmp_path / "ant.png"), "--logdir", str(tmp_path / "logs/series")]
        )  # fmt: skip
    assert ended.value.code == 0
    words = open_tab(tmp_path / "logs").ask("data/layers", run="series")["step_words"]
    assert words == {"5": "step 5 (ckpt_5.pt)", "20": "step 20 (ckpt_20.pt)"}


@pytest.mark.parametrize("raw", [None, "image", {}, {"kind": ["image"]}, {"kind": "film"}])
def test_a_source_of_another_version_is_ignored(raw: object) -> None:
    assert parsed_source(raw) is None
