"""The pure modules of the front end pass their own tests and read what Python writes."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from decoded_pictures import rgb_pixels
from node import required_node
from read_grid import read_maps
from reduced_maps import reduced
from torch import nn

from fmapboard.formats.tab_records import FORMAT, unpack
from fmapboard.records import PixelMark, Planes, StepData
from fmapboard.render.grid import PADDING, columns, draw_maps
from fmapboard.render.palettes import MARK_COLOURS, PALETTES, PIXEL_OF_LEVEL, VALUES, palette
from fmapboard.summary.build import SummaryBuilder

ROOT = Path(__file__).parents[3]
STATIC = ROOT / "src" / "fmapboard" / "plugin" / "static"


@pytest.fixture(scope="module")
def node() -> str:
    return required_node()


OWN = sorted(path for path in STATIC.rglob("*.js") if path.parent.name not in ("vendor", "dist"))


def ask(node: str, script: str, given: Any = None) -> Any:
    """Run a module script and parse the JSON that it prints; ``given`` is a variable in it."""
    code = f"const given = {json.dumps(given)};\n{script}"
    done = subprocess.run(
        [node, "--input-type=module", "--eval", code],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=STATIC,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_pure_modules_pass_their_own_tests(node: str) -> None:
    """All in one process: one for each file takes eight times as long."""
    files = sorted(path.as_uri() for path in (ROOT / "tests" / "js").glob("*.test.mjs"))
    assert files
    all_of_them = "".join(f"import {json.dumps(uri)};" for uri in files)
    done = subprocess.run(
        [node, "--test-reporter=tap", "--input-type=module", "--eval", all_of_them],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "# fail 0" in done.stdout
    assert "# skipped 0" in done.stdout
    assert int(re.search(r"^# pass (\d+)$", done.stdout, re.MULTILINE)[1]) > len(files)  # type: ignore[index]


def test_every_module_turns_type_checking_on() -> None:
    for path in OWN:
        assert path.read_text().startswith("// @ts-check\n/**"), path.name


def test_no_module_parses_text_as_markup_or_code() -> None:
    words = ("innerHTML", "InnerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(")
    for path in OWN:
        text = path.read_text()
        for word in words:
            assert word not in text, (path.name, word)


def test_what_is_vendored_names_its_versions_and_licences_and_needs_no_eval() -> None:
    text = STATIC.joinpath("vendor", "preact_htm.js").read_text()
    assert re.match(r"/\*!\nPreact \d+\.\d+\.\d+ and htm \d+\.\d+\.\d+, ", text)
    assert "Apache License, Version 2.0 (LICENSE_htm.txt)" in text
    assert "The MIT License (MIT)" in text
    assert "Version 2.0" in STATIC.joinpath("vendor", "LICENSE_htm.txt").read_text()
    code = text.partition("*/")[2]
    assert re.findall(r"\beval\b|\bFunction\b|\bimport\b|\bfetch\b|XMLHttp", code) == []


def test_nothing_is_loaded_from_another_host() -> None:
    for path in sorted([*STATIC.rglob("*.js"), *STATIC.rglob("*.css")]):
        text = re.sub(r"http://www\.w3\.org/\d{4}/\w+", "", path.read_text())  # names of formats
        assert "http://" not in text, path.name
        assert "https://" not in text, path.name
        own = re.sub(r'@import url\("\./\w+\.css"\);', "", text)
        assert path.suffix == ".js" or "@import" not in own, path.name


@pytest.mark.parametrize("name", PALETTES)
def test_the_front_end_has_the_palettes_of_the_writer(node: str, name: str) -> None:
    script = (
        'import { stored } from "./server/palettes.js";\n'
        "console.log(JSON.stringify(stored(given)));"
    )
    assert ask(node, script, name) == palette(name).table[:VALUES].tolist()


def test_the_front_end_has_the_marks_and_levels_of_the_writer(node: str) -> None:
    script = (
        'import { MARK, MARK_COLOURS, PIXEL_OF_LEVEL } from "./server/palettes.js";\n'
        "console.log(JSON.stringify([MARK, MARK_COLOURS, [...PIXEL_OF_LEVEL]]));"
    )
    marks, colours, levels = ask(node, script)
    assert marks == {mark.name: int(mark) for mark in PixelMark}
    assert colours == {str(int(mark)): list(rgb) for mark, rgb in MARK_COLOURS.items()}
    assert levels == PIXEL_OF_LEVEL.tolist()


READ = """
import { planesOf, valueAt } from "./server/decode.js";
const rgba = Uint8ClampedArray.from(given.rgba);
const { drawn, tile } = given.header;
const planes = planesOf(rgba, given.width, given.header);
const out = [];
for (let c = 0; c < drawn; c += 1)
  for (let y = 0; y < tile[0]; y += 1)
    for (let x = 0; x < tile[1]; x += 1)
      out.push(valueAt({ planes, lo: given.lo, hi: given.hi }, c, y, x));
console.log(JSON.stringify(out));
"""


@pytest.mark.each_once
@pytest.mark.parametrize("name", PALETTES)
@pytest.mark.parametrize("marked", [False, True])
def test_the_front_end_reads_back_what_the_writer_drew(node: str, name: str, marked: bool) -> None:
    channels, height, width = 7, 3, 5
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 256, (1, channels, height, width), dtype=np.uint8)
    lo, hi = np.linspace(-2, 1, channels)[None], np.linspace(1, 9, channels)[None]
    marks, flat = None, np.zeros((1, channels), bool)
    if marked:
        marks = np.zeros_like(pixels)
        marks[0, 2, 1, :3] = [
            PixelMark.NAN,
            PixelMark.POSITIVE_INFINITY,
            PixelMark.NEGATIVE_INFINITY,
        ]
        flat[0, 4], hi[0, 4] = True, lo[0, 4]
    planes = Planes(pixels, marks, flat, lo, hi, (1, channels, height, width), channels)
    picture = draw_maps(planes, 0, palette(name))
    rgb = rgb_pixels(picture)
    rgba = np.concatenate([rgb, np.full((*rgb.shape[:2], 1), 255, np.uint8)], axis=-1)
    header = {
        "drawn": channels,
        "tile": [height, width],
        "columns": columns(channels),
        "padding": PADDING,
        "palette": name,
    }
    given = {
        "rgba": rgba.ravel().tolist(),
        "width": rgba.shape[1],
        "header": header,
        "lo": lo[0].tolist(),
        "hi": hi[0].tolist(),
    }
    read = ask(node, READ, given)
    values, expected = read_maps(
        np.ascontiguousarray(rgb), lo[0], hi[0], (height, width), palette(name)
    )
    assert [pixel["mark"] for pixel in read] == expected.ravel().tolist()
    for pixel, value, mark in zip(read, values.ravel(), expected.ravel(), strict=True):
        if mark in (PixelMark.NAN, PixelMark.POSITIVE_INFINITY, PixelMark.NEGATIVE_INFINITY):
            assert pixel["value"] is None
        elif mark == 0:
            assert pixel["value"] == pytest.approx(value)


def test_the_front_end_reads_back_rows_and_the_format_that_the_writer_has(node: str) -> None:
    maps = torch.tensor([[[0.0, 1.0, 2.0, 5.0], [30.0, 10.0, float("nan"), 20.0]]])
    step = SummaryBuilder()(StepData(0, 1.0, measured=(reduced(maps, nn.Conv1d(1, 1, 1)),)))
    header, stored = unpack(step.records[0].blobs)
    (picture,) = step.pictures[0].samples
    assert picture.palette is not None  # because of the mark
    rgb = rgb_pixels(picture)
    rgba = np.concatenate([rgb, np.full((*rgb.shape[:2], 1), 255, np.uint8)], axis=-1)
    lo, hi = stored["feature_maps.lo"][0].tolist(), stored["feature_maps.hi"][0].tolist()
    given = {
        "rgba": rgba.ravel().tolist(), "width": 4, "header": header["pictures"][0], "lo": lo,
        "hi": hi,
    }  # fmt: skip
    read = [pixel["value"] for pixel in ask(node, READ, given)]
    assert read[6] is None
    expected = [0.0, 1.0, 2.0, 5.0, 30.0, 10.0, 20.0]
    assert read[:6] + read[7:] == pytest.approx(expected, abs=2 * 20 / 255)
    script = 'import { FORMAT } from "./server/decode.js";\nconsole.log(FORMAT);'
    assert ask(node, script) == FORMAT
