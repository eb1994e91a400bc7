"""Invalid requests and records get a clean 400 or 404; valid ones are answered as usual."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from event_files import event_files
from small_records import ARRAYS, HEADER
from tab_answers import unpacked
from tab_client import Tab, open_tab
from tensorboard import errors
from tensorboard.compat.proto import event_pb2, types_pb2
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from two_layer_runs import log_steps, store_blobs

from fmapboard.errors import ConfigurationError
from fmapboard.formats import tags
from fmapboard.formats.tab_records import pack
from fmapboard.records import Picture, TaggedPictures
from fmapboard.report.write import write_report

KEY = "fmapboard/0"


def with_header(**changes: Any) -> list[bytes]:
    return list(pack({**HEADER, **changes}, ARRAYS))


def with_picture(**changes: Any) -> list[bytes]:
    return with_header(pictures=[{**HEADER["pictures"][0], **changes}])


def raw(**changes: Any) -> list[bytes]:
    """A record with a header that `pack` would not write."""
    header, arrays = pack(HEADER, ARRAYS)
    return [json.dumps({**json.loads(header), **changes}).encode(), arrays]


FOREIGN: dict[str, list[bytes]] = {
    "no blob": [],
    "an empty blob": [b""],
    "a picture": [b"\x89PNG\r\n\x1a\n" + bytes(range(256)), b""],
    "a list": [b"[]", b""],
    "other json": [b'{"format": 1}', b""],
    "nested deeply": [b"[" * 100_000, b""],
    "a huge number": [b'{"format": ' + b"9" * 5000 + b"}", b""],
    "a format in words": raw(format="1"),
    "a format that is true": raw(format=True),
    "a newer format": raw(format=2),
    "no arrays": with_header()[:1],
    "short arrays": [with_header()[0], with_header()[1][:7]],
    "arrays of impossible size": raw(arrays=[{"name": "feature_maps.lo", "shape": [2**40]}]),
    "arrays of a wrong shape": list(pack(HEADER, {**ARRAYS, "feature_maps.mean": np.zeros(3)})),
    "an array without a name": raw(arrays=[{"name": 5, "shape": [1]}]),
    "nan in the header": raw(training_thread_ms=float("nan")),
    "pictures that are a number": raw(pictures=5),
    "pictures of numbers": raw(pictures=[5]),
    "a role that is a list": with_picture(role=[]),
    "a million million samples": with_picture(samples=10**12),
    "less than no channels": with_picture(drawn=-1),
    "half a character": raw(type="\ud800"),
    "a picture of half a character": raw(pictures=[{**HEADER["pictures"][0], "tag": "\ud800"}]),
    "a position in words": with_header(position="first"),
    "a kernel shape in words": with_header(kernel_shape="5x5"),
    "changes since a list": with_header(change_since=[0]),
    "changes since half a step": with_header(change_since={"weights": 0.5}),
    "changes of a wrong shape": list(pack(HEADER, {**ARRAYS, "feature_maps.change": np.ones(3)})),
    "changes of weights of a wrong shape": list(
        pack(HEADER, {**ARRAYS, "weights.change": np.ones(3)})
    ),
    "means of a tensor without a picture": list(
        pack(
            {**HEADER, "pictures": [{**HEADER["pictures"][0], "role": "inputs"}]},
            {"inputs.lo": np.zeros((1, 2)), "feature_maps.mean": np.zeros(())},
        )
    ),
}


BEHIND_THE_HEADER = {
    "no arrays", "short arrays", "arrays of impossible size", "arrays of a wrong shape",
    "an array without a name", "a million million samples", "changes of a wrong shape",
    "changes of weights of a wrong shape", "means of a tensor without a picture",
}  # fmt: skip
"""The list of layers reads only headers, so only the overview reports these."""


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Tab:
    """A run with two valid layers and every invalid record."""
    root = tmp_path_factory.mktemp("crowded")
    log_steps(root / "run", steps=[0])
    for name, blobs in FOREIGN.items():
        store_blobs(root / "run", blobs, tag=f"fmapboard/{name}")
    store_blobs(root / "run", [b"what"], tag="of/someone else")
    store_blobs(root / "run", [b"what"], tag="fmapboard/")
    return open_tab(root)


@pytest.mark.parametrize("name", FOREIGN)
def test_an_invalid_record_is_reported_and_requests_for_it_get_clean_errors(
    crowded: Tab, name: str
) -> None:
    key = f"fmapboard/{name}"
    routes = [
        crowded.get(f"data/{route}", run="run", key=key, step=0)
        for route in ("maps", "history", "numbers")
    ]
    if name not in BEHIND_THE_HEADER:
        assert isinstance(crowded.layer("run", key)["error"], str)
    assert crowded.health("run", key, 0)["error"]
    assert [answer.status_code for answer in routes] == [404, 404, 200]
    assert all(answer.json["error"] for answer in routes[:2])


def test_a_record_of_a_newer_format_is_answered_with_the_upgrade_to_make(crowded: Tab) -> None:
    error = crowded.layer("run", "fmapboard/a newer format")["error"]
    assert error == (
        "the record was written by a newer fmapboard, in format 2; this fmapboard reads formats up "
        "to 1: upgrade it"
    )


def test_valid_layers_next_to_invalid_records_are_shown(crowded: Tab) -> None:
    layers = crowded.ask("data/layers", run="run")["layers"]
    healthy = {layer["key"] for layer in layers if not layer["error"]}
    assert healthy == {KEY, "fmapboard/1", *(f"fmapboard/{name}" for name in BEHIND_THE_HEADER)}
    assert {layer["key"] for layer in layers} == {
        KEY, "fmapboard/1", *(f"fmapboard/{name}" for name in FOREIGN),
    }  # fmt: skip
    assert crowded.health("run", KEY, 0)["channels"] == 5
    assert crowded.open("data/maps", run="run", key=KEY, step=0)[0]["missing"] == []


def test_numbers_in_tags_may_have_any_length(tmp_path: Path) -> None:
    digits = "9" * 5000
    picture = TaggedPictures(
        f"attribution/a/sample_{digits}", "attribution", png_picture([1]).samples
    )
    store_blobs(
        tmp_path / "run", pack(HEADER, ARRAYS), tag=f"fmapboard/{digits}", pictures=(picture,)
    )
    store_blobs(tmp_path / "run", pack(HEADER, ARRAYS), tag=f"fmapboard/x{digits}")
    tab = open_tab(tmp_path)
    assert len(tab.ask("data/layers", run="run")["layers"]) == 2
    assert tab.ask("data/attribution", run="run")["series"] == []
    assert write_report([tmp_path / "run"], tmp_path / "out.html").runs == ("run",)


@pytest.mark.parametrize("step", [-(2**63), 2**63 - 1])
def test_a_step_may_be_any_number_of_64_bits(tmp_path: Path, step: int) -> None:
    store_blobs(tmp_path / "run", pack(HEADER, ARRAYS), step=step)
    facts, _ = open_tab(tmp_path).open("data/maps", run="run", key="fmapboard/a", step=step)
    assert facts["step"] == step
    assert write_report([tmp_path / "run"], tmp_path / "out.html").steps == ((step,),)


def test_a_series_with_a_damaged_tensor_is_not_there_and_the_others_are(tmp_path: Path) -> None:
    log_steps(tmp_path / "run", steps=[0])
    writer = EventFileWriter(str(tmp_path / "run"))
    event = event_pb2.Event(step=0, wall_time=1.0)
    for tag, plugin in (
        (tags.FIRST_NONFINITE, "text"),
        ("gradient_norm/0.weight", "scalars"),
        ("weights/0.weight", "histograms"),
    ):
        value = event.summary.value.add(tag=tag)
        value.metadata.plugin_data.plugin_name = plugin
        value.tensor.dtype = types_pb2.DT_INT32  # one number, which is not there
    writer.add_event(event)
    writer.close()
    tab = open_tab(tmp_path)
    for route in ("health", "findings", "health_step", "numbers"):
        assert tab.get(f"data/{route}", run="run", key=KEY, step=0).status_code == 200, route


def test_a_run_whose_steps_were_all_dropped_by_a_new_start_has_no_report(tmp_path: Path) -> None:
    log_steps(tmp_path / "run", steps=[0])
    writer = EventFileWriter(str(tmp_path / "run"))
    start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
    writer.add_event(event_pb2.Event(step=0, session_log=start))
    writer.close()
    (file,) = {*event_files(tmp_path)} - {*(tmp_path / "run").glob("*.fmapboard")}
    file.rename(file.with_name("events.out.tfevents.9999999999"))  # the last one
    with pytest.raises(ConfigurationError, match="nothing logged by fmapboard in"):
        write_report([tmp_path / "run"], tmp_path / "out.html")
    log_steps(tmp_path / "other", steps=[0])
    assert write_report([tmp_path], tmp_path / "out.html").runs == ("other",)


ASK = {"run": "run2", "key": KEY, "step": 10}


@pytest.mark.parametrize(
    ("route", "changes", "status", "named"),
    [
        ("layers", {"run": None}, 400, "run"),
        ("layers", {"run": ""}, 400, "run"),
        ("layers", {"run": "nope"}, 404, "'nope'"),
        ("layers", {"run": "../../etc/passwd"}, 404, "etc/passwd"),
        ("layers", {"run": "a\0b"}, 404, "no feature maps"),
        ("layers", {"run": "\U0001f600" * 1000}, 404, "no feature maps"),
        ("verdicts", {"run": None}, 400, "run"),
        ("health_step", {"step": None}, 400, "step"),
        ("health_step", {"step": "1e3"}, 400, "'1e3'"),
        ("health_step", {"run": "nope"}, 404, "'nope'"),
        ("maps", {"key": None}, 400, "key"),
        ("maps", {"key": "nope"}, 404, "'nope'"),
        ("maps", {"key": "feature_maps_5x1x1x1/0"}, 404, "feature_maps_5x1x1x1"),
        ("maps", {"key": "fmapboard_first/0"}, 404, "fmapboard_first/0"),
        ("maps", {"key": "fmapboard/../0"}, 404, "fmapboard/../0"),
        ("maps", {"key": "<script>alert(1)</script>"}, 404, "<script>"),
        ("maps", {"step": "11"}, 404, "step 11"),
        ("maps", {"step": "-1"}, 404, "step -1"),
        ("maps", {"step": "9" * 30}, 400, "step"),
        ("maps", {"step": str(2**63)}, 400, "step"),
        ("maps", {"step": "1_0"}, 400, "step"),
        ("maps", {"step": "١"}, 400, "step"),
        ("maps", {"step": "10", "ts": "soon"}, 400, "ts"),
        ("maps", {"step": "10", "ts": "nan"}, 400, "ts"),
        ("history", {"ts": "inf"}, 400, "ts"),
        ("history", {"key": "fmapboard/nope"}, 404, "nope"),
        ("history", {"sample": "first"}, 400, "'first'"),
        ("history", {"sample": "-1"}, 400, "not be negative"),
        ("history", {"sample": "2"}, 404, "no sample 2"),
        ("numbers", {"key": "fmapboard/nope"}, 404, "nope"),
        ("input", {"sample": "first"}, 400, "sample"),
        ("input", {"sample": "7"}, 404, "network_input/sample_7"),
        ("input", {"sample": "-1"}, 404, "network_input/sample_-1"),
        ("input", {"name": "nope"}, 404, "nope.network_input/sample_0"),
        ("input", {"step": None}, 400, "step"),
    ],
)
def test_an_invalid_request_is_answered_with_the_reason(
    tab: Tab, route: str, changes: dict[str, Any], status: int, named: str
) -> None:
    words = {key: word for key, word in {**ASK, **changes}.items() if word is not None}
    answer = tab.get(f"data/{route}", **words)
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/json")
    assert named in answer.json["error"]
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    "route",
    ["..", "../", "../../etc/passwd", "data/../../x", "static/index.js", "loader.py",
     "%2e%2e/loader.py", "data/", "\\index.js", "INDEX.JS"],
)  # fmt: skip
def test_a_path_that_is_no_route_is_not_found(tab: Tab, route: str) -> None:
    assert tab.get(route).status_code == 404


def test_unknown_query_parameters_are_ignored(tab: Tab) -> None:
    assert tab.get("data/layers", run="run2", _="17", __proto__="x").status_code == 200


@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_only_get_requests_are_accepted(tab: Tab, method: str) -> None:
    assert getattr(tab.client, method)("/data/plugin/feature_maps/data/runs").status_code == 405


def test_an_empty_log_directory_has_no_runs(tmp_path: Path) -> None:
    assert open_tab(tmp_path).ask("data/runs")["runs"] == []


def failing(times: int, read_blob: Callable[..., bytes]) -> Callable[..., bytes]:
    left = [times]

    def read(ctx: Any, *, blob_key: str) -> bytes:
        left[0] -= 1
        if left[0] >= 0:
            raise errors.NotFoundError(blob_key)
        return read_blob(ctx, blob_key=blob_key)

    return read


@pytest.mark.parametrize(("times", "status"), [(1, 200), (1000, 404)])
def test_a_blob_that_was_just_dropped_is_looked_up_a_second_time(
    logdir: Path, monkeypatch: pytest.MonkeyPatch, times: int, status: int
) -> None:
    tab = open_tab(logdir)
    monkeypatch.setattr(tab.provider, "read_blob", failing(times, tab.provider.read_blob))
    assert tab.get("data/maps", **ASK).status_code == status


def test_a_bug_in_the_tab_is_answered_with_status_500_and_logged(
    logdir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tab = open_tab(logdir)
    monkeypatch.setattr(tab.provider, "read_blob", lambda *_, **__: 1 / 0)
    answer = tab.get("data/maps", **ASK)
    assert (answer.status_code, answer.json) == (
        500,
        {"error": "ZeroDivisionError on the server; see its log"},
    )
    assert "could not answer /data/plugin/feature_maps/data/maps" in caplog.text


def png_picture(pngs: Sequence[int]) -> TaggedPictures:
    samples = tuple(Picture(np.full((14, 8), level, np.uint8), tile=(4, 4)) for level in pngs)
    return TaggedPictures("feature_maps_2x1x1x1/a", "feature_maps", samples)


def test_pictures_of_fewer_samples_than_the_header_says_are_missing(tmp_path: Path) -> None:
    planes = {"feature_maps.lo": np.zeros((2, 2)), "feature_maps.hi": np.ones((2, 2))}
    header = json.loads(with_picture(samples=2)[0])
    blobs = pack(header, {**ARRAYS, **planes})
    store_blobs(tmp_path / "run", blobs, pictures=(png_picture([1]),))
    facts, _ = open_tab(tmp_path).open("data/maps", run="run", key="fmapboard/a", step=0)
    assert facts["missing"] == ["feature_maps"]
    assert facts["pictures"] == []


def test_dead_channels_of_the_activation_that_follows_count_as_those_of_the_layer(
    tmp_path: Path,
) -> None:
    header = {**HEADER, "activation": {"label": "relu", "type": "ReLU"}}
    store_blobs(tmp_path / "run", pack(header, ARRAYS))
    dead = {**ARRAYS, "activation.dead": np.array([0.0, 1.0])}
    store_blobs(tmp_path / "run", pack(header, dead), step=1)
    tab = open_tab(tmp_path)
    assert tab.layer("run", "fmapboard/a")["activation"] == "relu"
    facts, body = tab.open("data/history", run="run", key="fmapboard/a")
    found = unpacked(facts["arrays"], body)["feature_maps.dead"]
    assert found.tolist() == [[0.0, 0.0], [0.0, 1.0]]


def test_history_is_nan_at_a_step_without_numbers(tmp_path: Path) -> None:
    one = {name: array[..., :1] for name, array in ARRAYS.items()}
    store_blobs(tmp_path / "run", pack(HEADER, ARRAYS))
    store_blobs(tmp_path / "run", [b"?"], step=1)
    store_blobs(tmp_path / "run", pack(json.loads(with_picture(drawn=1)[0]), one), step=2)
    facts, body = open_tab(tmp_path).open("data/history", run="run", key="fmapboard/a")
    assert facts["steps"] == [0, 1, 2]
    table = unpacked(facts["arrays"], body)["feature_maps.minimum"]
    np.testing.assert_array_equal(table, [[1, 1], [np.nan, np.nan], [1, np.nan]])
