"""What the tab, the checks and reports say of a run whose steps are images or checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from browser_visitor import Person
from PIL import Image
from tab_client import Tab, open_tab
from torch import nn

import fmapboard
from fmapboard.checks import run_checks
from fmapboard.cli.main import run_visualize
from fmapboard.cli.run_files import read_runs
from fmapboard.formats.overview import parsed_source
from fmapboard.report.write import OF_IMAGES, PRIVACY, write_report

NAMES = ("ant.png", "bee.png", "cow.png", "dog.png")


def half_dead() -> nn.Sequential:
    """A network of which half of the channels are off for any image."""
    torch.manual_seed(0)
    conv = nn.Conv2d(3, 8, 3)
    with torch.no_grad():
        conv.weight.abs_()
        conv.weight[::2] *= -1
        conv.bias.zero_()
    return nn.Sequential(conv, nn.ReLU(), nn.Conv2d(8, 4, 3))


def much_brighter(image: Image.Image) -> torch.Tensor:
    """Noise [3, 40, 40], for each of the images 40 times as bright as for the one before."""
    return torch.rand(3, 40, 40) * 40 ** ((image.getpixel((0, 0))[0] - 20) / 50)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory with a run of four images."""
    folder = tmp_path_factory.mktemp("steps")
    for grey, name in enumerate(NAMES):
        Image.new("RGB", (40, 40), (50 * grey + 20,) * 3).save(folder / name)
    fmapboard.visualize(
        half_dead(),
        [folder / name for name in NAMES],
        log_dir=folder / "logs/images",
        transform=much_brighter,
    )
    return folder / "logs"


@pytest.fixture(scope="module")
def tab(logs: Path) -> Tab:
    return open_tab(logs)


def test_a_step_of_images_is_named_after_the_file(tab: Tab) -> None:
    words = {str(step): f"image {step} ({name})" for step, name in enumerate(NAMES)}
    assert tab.ask("data/layers", run="images")["step_words"] == words
    assert tab.open("data/health", run="images")[0]["step_words"] == words


def test_the_tab_says_which_image_is_shown(
    serve: Callable[[Path], str], visit: Callable[..., Person], logs: Path
) -> None:
    person = visit(serve(logs), run="images", layer="fmapboard/0", view="maps", step=2)
    person.settle()
    assert person.see(".time .step").inner_text() == "image 2 (cow.png)"
    assert not person.see(".time .label").is_visible()
    assert person.see(".title .facts").inner_text().endswith(" · image 2 (cow.png)")
    person.wait("document.querySelector('.charts h2').textContent === 'Layer over images'")
    assert person.see(".charts h3").first.inner_text().startswith("Histogram over images")
    person.press("m")
    person.wait("document.documentElement.dataset.film === 'ready'")
    assert person.see(".film .status").inner_text().startswith("image 2 (cow.png) · channel 0")
    assert person.see(".film .facts").inner_text() == "Conv2d · 4 kept images, 0 to 3"
    notes = person.see(".film-inputs").inner_text()
    assert notes == "Each frame is of another image, with the same weights."
    person.press("m", "v")
    person.settle()
    about = person.see(".overview .about").text_content()
    assert about.startswith("3 layers × 4 images · a column per kept image")
    assert "at image 0 (ant.png)" in person.see(".stems").first.inner_text()


def test_nothing_lasts_from_one_image_to_the_next(tab: Tab, logs: Path) -> None:
    assert tab.open("data/health", run="images")[0]["since"] == {}
    found = [one["message"] for one in tab.ask("data/findings", run="images")["findings"]]
    assert "50 % of 8 channels dead in `0` (after `1`) for images 0 to 3" in found
    large = [text for text in found if text.startswith("magnitudes up to")]
    assert large[0].endswith("for image 3 (dog.png)")
    (run,) = read_runs(logs)
    said = [one.text for one in run_checks(run.records[0]).findings]
    assert not [text for text in [*found, *said] if "since step" in text or "at step" in text]


def test_magnitudes_of_different_images_are_not_a_growth(logs: Path) -> None:
    (run,) = read_runs(logs)
    table = run.records[0].layers()
    assert table.columns["maximum"][-1, 0] > 3000 * table.columns["maximum"][0, 0]
    assert "exploding" not in {one.kind for one in run_checks(run.records[0]).findings}


def test_a_report_of_images_does_not_say_that_it_contains_training_images(
    logs: Path, tmp_path: Path
) -> None:
    model = half_dead()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, tmp_path / "training", optimizer=optimizer, every=1):
        model(torch.rand(1, 3, 40, 40)).mean().backward()
        optimizer.step()
    images = write_report([logs / "images"], tmp_path / "images.html")
    assert images.privacy == OF_IMAGES
    both = write_report([logs / "images", tmp_path / "training"], tmp_path / "both.html")
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
