"""The entry point never keeps TensorBoard from starting, and has it keep enough steps."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from tensorboard.plugins.base_plugin import TBContext
from werkzeug.test import Client

from fmapboard.plugin import front_end
from fmapboard.plugin.loader import FeatureMapsLoader


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({}, {"feature_maps": 50, "images": 50}),
        ({"scalars": 7}, {"feature_maps": 50, "images": 50, "scalars": 7}),
        ({"images": 200}, {"feature_maps": 200, "images": 200}),
        ({"images": 0}, {"feature_maps": 0, "images": 0}),
        ({"feature_maps": 5}, {"feature_maps": 5, "images": 5}),
        ({"images": 3, "feature_maps": 5}, {"feature_maps": 5, "images": 3}),
    ],
)
def test_as_many_pictures_as_records_are_kept_and_the_users_number_is_respected(
    given: dict[str, int], kept: dict[str, int]
) -> None:
    flags, before = Namespace(samples_per_plugin=given), dict(given)
    FeatureMapsLoader().fix_flags(flags)
    assert flags.samples_per_plugin == kept
    assert given == before  # the caller may still use it


@pytest.mark.parametrize("given", [None, "images=5", 7, ["images"]])
def test_flags_that_are_not_understood_are_left_alone(
    given: Any, caplog: pytest.LogCaptureFixture
) -> None:
    flags = Namespace(samples_per_plugin=given)
    FeatureMapsLoader().fix_flags(flags)
    assert flags == Namespace(samples_per_plugin=given)
    assert caplog.text == ""


def test_flags_without_sampling_are_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    flags = Namespace()
    FeatureMapsLoader().fix_flags(flags)
    assert flags == Namespace()
    assert caplog.text == ""


def test_flags_that_cannot_be_set_do_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    class Frozen:
        __slots__ = ()
        samples_per_plugin: dict[str, int] = {}  # noqa: RUF012

    FeatureMapsLoader().fix_flags(Frozen())
    assert "could not raise the number of steps" in caplog.text


def test_the_tab_loads_without_a_data_provider_and_reports_it() -> None:
    plugin = FeatureMapsLoader().load(TBContext())
    assert plugin.plugin_name == "feature_maps"
    assert plugin.frontend_metadata().tab_name == "Feature maps"
    assert plugin.is_active() is False
    routes = plugin.get_plugin_apps()
    assert all(route.startswith("/") and "*" not in route for route in routes)
    answer = Client(routes["/data/runs"]).get("/")
    assert (answer.status_code, answer.json) == (
        404,
        {"error": "this TensorBoard has no data provider"},
    )


def test_an_incomplete_installation_disables_only_the_tab(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(front_end, "ENTRY", "/gone.js")
    assert FeatureMapsLoader().load(TBContext()) is None
    assert "the Feature maps tab is missing (FileNotFoundError: " in caplog.text
    assert "gone.js; reinstall fmapboard); run `fmapboard doctor`" in caplog.text


def test_a_second_installation_is_not_loaded() -> None:
    context = TBContext(plugin_name_to_instance={"feature_maps": object()})
    assert FeatureMapsLoader().load(context) is None


def test_the_tab_loads_without_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from fmapboard.plugin.loader import FeatureMapsLoader\n"
        "print('numpy' in sys.modules, 'tensorboard.backend.http_util' in sys.modules)\n"
        "from tensorboard.plugins.base_plugin import TBContext\n"
        "print(FeatureMapsLoader().load(TBContext()).plugin_name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "feature_maps"]


def test_the_front_end_is_an_entry_a_script_and_a_style_sheet() -> None:
    assert set(front_end.static_files()) == {"/index.js", "/dist/app.js", "/style.css"}


def test_files_are_served_with_fixed_content_types_and_without_sniffing(tab: Any) -> None:
    answer = tab.get("index.js")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert (
        answer.data
        == Path(front_end.__file__).with_name("static").joinpath("index.js").read_bytes()
    )
