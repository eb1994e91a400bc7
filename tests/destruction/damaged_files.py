"""Damaged and hostile event files, for ``check``, ``report`` and the routes of the tab."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from attempts import Tried, in_process, judged
from google.protobuf.message import DecodeError
from hostile_folders import png_bomb
from tab_client import Tab, open_alone, open_tab
from tensorboard.compat.proto import event_pb2, summary_pb2

from fmapboard.cli import main
from fmapboard.formats import framing
from fmapboard.formats.tab_records import PLUGIN_NAME

_HUGE = (2**31 - 1, 2**31, 2**40, 2**63, 2**64 - 1)
_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**31, 2**53, 2**63, 10**400, -0.5, 1e308, float("nan"), float("inf"),
    "", "x", "\x1b[31m", "[/red]", "\ud800", "a" * 10_000, [], [[]], {}, {"a": []}, [0] * 1000,
    [2**40],
)  # fmt: skip
_TAGS = (
    "fmapboard/", "fmapboard", ".fmapboard/a", "a.b.fmapboard/a", "fmapboard_overview/x",
    "fmapboard_first/0", "fmapboard_findings", "fmapboard_checks", "fmapboard_first_nonfinite",
    "fmapboard_patches/0",
    "attribution/0/sample_" + "9" * 5000, "attribution/sample_0", "network_input/sample_-1",
    "network_input/sample_" + "9" * 5000, "feature_maps_5x1x1x1/" + "n" * 100_000,
    "fmapboard/\x1b[31m[/red]", "gradient_norm/", "gradient_norm/\x1b]0;x\x07", "update_ratio/[/]",
    "", "/", "\n", "fmapboard/0", "fmapboard/first_nonfinite", "fmapboard/checks",
)  # fmt: skip
_PLUGINS = ("images", "scalars", "histograms", "text", "x")
_COMMANDS: dict[str, set[int]] = {"check": {0, 1, 2}, "check --json": {0, 1, 2}, "report": {0, 2}}
"""Commands, and the exit statuses that are right."""
_MOST_BLOBS = 2**16
"""TensorBoard itself lists as many blobs of a value as its shape claims, and does not end."""


def attempts_on_files(work: Path, run: Path, count: int, seed: int = 0) -> Iterator[Tried]:
    """Write each damaged file, and read it in every way.

    Args:
        work: a new folder.
        run: a run of fmapboard.
        count: number of random damages of each kind.
        seed: of the random damages.
    """
    content = b"".join(file.read_bytes() for file in sorted(run.glob("*tfevents*")))
    for name, damaged in damages(content, count, random.Random(seed)):
        log = work / "log"
        (log / "run").mkdir(parents=True)
        (log / "run" / "events.out.tfevents.1.host.1.0.fmapboard").write_bytes(damaged)
        failure = judged(in_process(partial(read_in_every_way, log, work / "out.html")), {0})
        yield Tried(name, failure)
        shutil.rmtree(log)


def read_in_every_way(log: Path, out: Path) -> None:
    """Run ``check`` and ``report`` and ask the tab's routes; ends with 1 for a wrong answer."""
    wrong = []
    for words, codes in _COMMANDS.items():
        print("==", words)
        more = ["--out", str(out)] if words == "report" else []
        sys.argv = ["fmapboard", *words.split(), *more, str(log)]
        try:
            main.run()
        except SystemExit as end:
            if end.code not in codes:
                wrong.append(f"{words} ended with {end.code}")
    print("== tab")
    try:
        tab = None if _claims_many_blobs(log) else open_tab(log)
    except Exception as error:  # TensorBoard cannot read the file, with or without the tab
        print(f"TensorBoard: {type(error).__name__}: {error}"[:200].encode("ascii", "replace"))
    else:
        wrong += wrong_answers(tab) if tab is not None else []
    print("== standalone")
    wrong += wrong_answers(open_alone(log))
    if wrong:
        print("; ".join(wrong)[:2000], file=sys.stderr)
        sys.exit(1)


def _claims_many_blobs(log: Path) -> bool:
    values = (value for event in _parsed(log / "run") for value in event.summary.value)
    return any(dim.size > _MOST_BLOBS for v in values for dim in v.tensor.tensor_shape.dim)


def _parsed(run: Path) -> Iterator[Any]:
    """The events of a run that can be parsed."""
    for file in run.glob("*tfevents*"):
        with file.open("rb") as opened, contextlib.suppress(framing.Damaged):
            for _, size in framing.records(opened):
                with contextlib.suppress(DecodeError):
                    yield event_pb2.Event.FromString(opened.read(size))


def wrong_answers(tab: Tab) -> Iterator[str]:
    """The questions about every run, layer and step whose answer is not 200, 400 or 404."""
    for run in [one["run"] for one in _asked(tab, "runs").get("runs", [])]:
        for route, query in _questions(tab, run):
            status = tab.get(f"data/{route}", run=run, **query).status_code
            if status >= 500:
                yield f"{route} {query}"[:200] + f": {status}"


def _questions(tab: Tab, run: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(Route, query) for a few steps and layers of a run."""
    for route in ("layers", "health", "findings", "verdicts", "attribution", "patches"):
        yield route, {}
    listed = _asked(tab, "layers", run=run)
    for step in listed.get("steps", [])[-4:]:
        yield "health_step", {"step": step}
        yield "input", {"step": step, "sample": 0}
    for layer in listed.get("layers", [])[:6]:
        key, steps = layer["key"], layer.get("steps", listed.get("steps", []))
        yield "numbers", {"key": key}
        yield "history", {"key": key}
        for step in steps[-4:]:
            yield "maps", {"key": key, "step": step}
            other = {"other_run": run, "other_step": steps[0], "other_key": key}
            yield "difference", {"key": key, "step": step, **other}
    for route, asked in (("attribution_picture", "attribution"), ("layer_patches", "patches")):
        for series in _asked(tab, asked, run=run).get("series", [])[:4]:
            for step in series["steps"][-2:]:
                yield route, {"key": series["key"], "step": step}


def _asked(tab: Tab, route: str, **query: object) -> dict[str, Any]:
    answer = tab.get(f"data/{route}", **query)
    if answer.status_code != 200:
        return {"status": answer.status_code}
    try:
        found = json.loads(answer.data)
    except ValueError:
        found = {}
    return found if isinstance(found, dict) else {}


def damages(content: bytes, count: int, chance: random.Random) -> Iterator[tuple[str, bytes]]:
    """(Name, file) of each damage.

    Args:
        content: a valid file.
        count: number of random damages of each kind.
        chance: source of the random ones.
    """
    records = list(_records(content))
    for number in range(count):
        at = chance.randrange(len(content))
        yield f"cut off at byte {at}", content[:at]
        at = chance.randrange(len(content))
        yield f"byte {at} changed", _changed(content, at, chance)
        place = chance.randrange(1, len(records))
        record = records[place]
        at = chance.randrange(len(record))
        yield (
            f"record {place}, byte {at} changed, with the right checksum",
            _joined(records, place, _changed(record, at, chance)),
        )
        garbage = chance.randbytes(chance.choice((1, 10, 1000, 100_000)))
        yield f"garbage {number} in place of record {place}", _joined(records, place, garbage)
        yield f"records in another order {number}", _framed(chance.sample(records, len(records)))
        yield f"a header's value replaced {number}", _framed(_with_header(records, chance))
        yield f"a record's blobs replaced {number}", _framed(_with_blobs(records, chance))
        yield f"a value's tensor replaced {number}", _framed(_with_tensor(records, chance))
    for size in _HUGE:
        yield f"a length of {size} bytes", content + _head(size) + b"\0" * 100
        yield f"only a length of {size} bytes", _head(size)
    for tag in _TAGS:
        for kind, value in _own_values().items():
            event = event_pb2.Event(step=1, wall_time=2.0)
            event.summary.value.add().CopyFrom(value)
            event.summary.value[0].tag = tag
            yield f"{kind} under {tag[:40]!r}", content + _frame(event.SerializeToString())
    for name, event in _events().items():
        yield name, content + _frame(event.SerializeToString()) + content
    for name, event in _bombs(records).items():
        yield name, content + _frame(event.SerializeToString())


def _records(content: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(content):
        (size,) = struct.unpack_from("<Q", content, at)
        yield content[at + 12 : at + 12 + size]
        at += size + 16


def _head(size: int) -> bytes:
    length = struct.pack("<Q", size)
    return length + framing.checksum(length)


def _frame(record: bytes) -> bytes:
    return b"".join(framing.frame(record))


def _framed(records: list[bytes]) -> bytes:
    return b"".join(map(_frame, records))


def _joined(records: list[bytes], place: int, record: bytes) -> bytes:
    return _framed([*records[:place], record, *records[place + 1 :]])


def _changed(data: bytes, at: int, chance: random.Random) -> bytes:
    return data[:at] + bytes([data[at] ^ chance.randrange(1, 256)]) + data[at + 1 :]


def _with_values(
    records: list[bytes], chance: random.Random, change: Callable[[Any], None]
) -> list[bytes]:
    """The records, one of fmapboard's values in one of them changed."""
    found = [(p, event_pb2.Event.FromString(record)) for p, record in enumerate(records)]
    own = [
        (place, event, value)
        for place, event in found
        for value in event.summary.value
        if value.tensor.string_val
    ]
    place, event, value = chance.choice(own)
    change(value)
    return [*records[:place], event.SerializeToString(), *records[place + 1 :]]


def _with_header(records: list[bytes], chance: random.Random) -> list[bytes]:
    """The records, with a hostile value somewhere in a JSON text of fmapboard's."""

    def change(value: Any) -> None:
        for at, blob in enumerate(value.tensor.string_val):
            try:
                text, packed = json.loads(blob), False
            except ValueError:
                try:
                    text, packed = json.loads(zlib.decompress(blob)), True
                except (ValueError, zlib.error):
                    continue
            if isinstance(text, dict | list) and chance.random() < 0.7:
                _replace_one(text, chance)
                new = json.dumps(text).encode()
                value.tensor.string_val[at] = zlib.compress(new) if packed else new

    return _with_values(records, chance, change)


def _replace_one(text: Any, chance: random.Random) -> None:
    """Replace or remove one entry of nested lists and dictionaries."""
    while True:
        keys = list(text) if isinstance(text, dict) else list(range(len(text)))
        if not keys:
            return
        key = chance.choice(keys)
        inner = text[key]
        if isinstance(inner, dict | list) and inner and chance.random() < 0.8:
            text = inner
            continue
        if chance.random() < 0.1:
            del text[key]
        else:
            text[key] = chance.choice(_VALUES)
        return


def _with_blobs(records: list[bytes], chance: random.Random) -> list[bytes]:
    """The records, with the blobs of a value cut, lengthened, exchanged, or filled with NaN."""

    def change(value: Any) -> None:
        blobs = list(value.tensor.string_val)
        at = chance.randrange(len(blobs))
        blobs = chance.choice((
            lambda: blobs[:at], lambda: blobs[::-1], lambda: blobs * 2, lambda: [b""] * len(blobs),
            lambda: [*blobs[:at], blobs[at][: len(blobs[at]) // 2], *blobs[at + 1 :]],
            lambda: [*blobs[:at], blobs[at] * 2, *blobs[at + 1 :]],
            lambda: [*blobs[:at], b"\xff" * len(blobs[at]), *blobs[at + 1 :]],
            lambda: [*blobs[:at], chance.randbytes(len(blobs[at])), *blobs[at + 1 :]],
        ))()  # fmt: skip
        del value.tensor.string_val[:]
        value.tensor.string_val.extend(blobs)

    return _with_values(records, chance, change)


def _with_tensor(records: list[bytes], chance: random.Random) -> list[bytes]:
    """The records, with the shape, type or step of one of their values replaced."""

    def change(value: Any) -> None:
        kind = chance.randrange(4)
        if kind == 0:
            value.tensor.dtype = chance.randrange(30)
        elif kind == 1:
            del value.tensor.tensor_shape.dim[:]
            value.tensor.tensor_shape.dim.add(size=chance.choice((-1, 0, 1, 2**40, 2**62)))
        elif kind == 2:
            value.metadata.plugin_data.plugin_name = chance.choice(
                ("images", "scalars", "histograms", "text", "x")
            )
        else:
            value.simple_value = float("nan")

    return _with_values(records, chance, change)


def _own_values() -> dict[str, Any]:
    """Values of each kind, to be stored under tags of fmapboard."""
    blobs, scalar, huge, image = (summary_pb2.Summary.Value() for _ in range(4))
    _as_blobs(blobs, PLUGIN_NAME, b'{"format": 1}', b"", b"")
    scalar.simple_value = float("nan")
    huge.tensor.dtype = 1
    huge.tensor.tensor_shape.dim.add(size=2**40)
    huge.tensor.float_val.append(1.0)
    huge.metadata.plugin_data.plugin_name = "scalars"
    _as_blobs(image, "images", b"1", b"1", b"no picture")
    return {
        "a record": blobs,
        "a number": scalar,
        "a tensor of 2^40 numbers": huge,
        "an image": image,
    }


def _as_blobs(value: Any, plugin: str, *blobs: bytes) -> None:
    value.tensor.dtype = 7
    value.tensor.tensor_shape.dim.add(size=len(blobs))
    value.tensor.string_val.extend(blobs)
    value.metadata.plugin_data.plugin_name = plugin
    value.metadata.data_class = 3


def _events() -> dict[str, Any]:
    """Events with hostile steps and times, before the same run once more."""
    found = {}
    for step in (-1, -(2**63), 2**63 - 1):
        found[f"a start at step {step}"] = event_pb2.Event(
            step=step, session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        )
        event = found[f"a number at step {step}"] = event_pb2.Event(step=step)
        event.summary.value.add(tag="gradient_norm/total", simple_value=1.0)
        event = found[f"a record at step {step}"] = event_pb2.Event(step=step)
        _as_blobs(event.summary.value.add(tag="fmapboard_overview"), PLUGIN_NAME, b"{}", b"", b"")
    for time in (float("nan"), float("inf"), -1e300, 1e300):
        event = found[f"a number at {time} s"] = event_pb2.Event(step=9, wall_time=time)
        event.summary.value.add(tag="gradient_norm/total", simple_value=1.0)
        event = found[f"a record at {time} s"] = event_pb2.Event(step=9, wall_time=time)
        _as_blobs(event.summary.value.add(tag="fmapboard/0"), PLUGIN_NAME, b"{}", b"")
    return found


def _bombs(records: list[bytes]) -> dict[str, Any]:
    """Events whose content becomes very large when it is decompressed or parsed.

    Pictures are stored at a new step of every series of pictures, beside its records.
    """
    layers = zlib.compress(b"[" + b"[]," * 20_000_000 + b"[]]", 9)
    found = {
        "a list of 20 million layers": _with_blob(records, "fmapboard_overview", 2, layers),
        "a header of 10 million lists": _with_blob(
            records, "fmapboard_overview", 0, b'{"format":1,"a":[' + b"[]," * 10_000_000 + b"[]]}"
        ),
    }
    pictures = {
        "60000 x 60000 pixels": png_bomb((60_000, 60_000)),
        "12000 x 14000 pixels after a header of 8 x 8": png_bomb((8, 8), (12_000, 14_000)),
        "20000 x 20000 pixels after a header of 8 x 8": png_bomb((8, 8), (20_000, 20_000)),
        "8 x 8 pixels after 200 MB of text": png_bomb((8, 8), text=200_000_000),
        "0 x 0 pixels": png_bomb((0, 0)),
    }
    for name, png in pictures.items():
        found[f"pictures of {name}"] = _with_pictures(records, png)
    return found


def _last_step(records: list[bytes]) -> Any:
    """The last event that has records of fmapboard and pictures."""
    events = [event_pb2.Event.FromString(record) for record in records]
    return [e for e in events if any(v.tag == "fmapboard/0" for v in e.summary.value)][-1]


def _with_blob(records: list[bytes], tag: str, at: int, blob: bytes) -> Any:
    event = _last_step(records)
    event.step += 1
    (value,) = [value for value in event.summary.value if value.tag == tag]
    value.tensor.string_val[at] = blob
    return event


def _with_pictures(records: list[bytes], png: bytes) -> Any:
    event = _last_step(records)
    event.step += 1
    for value in event.summary.value:
        if value.metadata.plugin_data.plugin_name == "images":
            for at in range(2, len(value.tensor.string_val)):
                value.tensor.string_val[at] = png
        elif value.HasField("image"):
            value.image.encoded_image_string = png
    return event
