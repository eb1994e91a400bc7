"""Log messages name the library."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from fmapboard.errors import WarnOnce, closest, for_shell, log


def test_every_message_begins_with_the_name_of_the_library_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "fmapboard"):
        log.info("%d layers", 3)
        log.warning("fmapboard: said already")
        WarnOnce().warn("about", "text with %")
    assert [record.getMessage() for record in caplog.records] == [
        "fmapboard: 3 layers",
        "fmapboard: said already",
        "fmapboard: text with %",
    ]


def test_without_any_logging_set_up_a_warning_is_printed_with_the_name() -> None:
    script = "from fmapboard.errors import WarnOnce; WarnOnce().warn('about', 'text')"
    printed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert printed.stderr == "fmapboard: text\n"


def test_a_command_to_paste_is_quoted_for_the_shell_of_the_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert for_shell("serve", "runs/demo", "my runs") == "serve runs/demo 'my runs'"
    monkeypatch.setattr(sys, "platform", "win32")
    assert for_shell("serve", r"runs\demo", r"C:\my runs") == r'serve runs\demo "C:\my runs"'


def test_a_problem_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    warn = WarnOnce()
    with caplog.at_level(logging.WARNING, "fmapboard"):
        for text in ("first", "second"):
            warn.warn("about", text)
        warn.warn("another", "third")
    assert [record.getMessage() for record in caplog.records] == [
        "fmapboard: first",
        "fmapboard: third",
    ]


RESNET = [f"layer{i}.{j}.conv{k}" for i in (1, 2) for j in (0, 1) for k in (1, 2)]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("layer1.0.conv3", "; closest: layer1.0.conv2, layer1.0.conv1, layer2.0.conv2"),
        ("conv2", "; closest: layer1.0.conv2, layer1.1.conv2, layer2.0.conv2"),
        ("layr1.*", "; closest: layer1.*, layer2.*"),
        ("*.covn1", "; closest: *.conv1, *.conv2"),
        ("encoder.blocks.7.attention", ""),
        ("head", ""),
    ],
)
def test_only_names_that_are_really_close_are_suggested(name: str, said: str) -> None:
    assert closest(name, RESNET) == said


def test_a_few_names_are_listed_if_none_is_close() -> None:
    assert closest("layer9", ["stem", "head"]) == "; there are: stem, head"
    assert closest("layer9", ["stem", "head"], listed=1) == ""
    assert closest("layer9", []) == ""
