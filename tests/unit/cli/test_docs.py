"""`fmapboard docs`: the pages that messages refer to, wherever fmapboard is installed."""

from __future__ import annotations

import io
import sys

import pytest

from fmapboard.checks import BUILT_IN, Finding
from fmapboard.cli.commands.docs import print_docs, section
from fmapboard.cli.main import run
from fmapboard.errors import ConfigurationError


@pytest.mark.parametrize("kind", [check.kind for check in BUILT_IN])
def test_the_command_that_a_finding_names_prints_the_section_of_its_check(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    link = Finding(kind=kind, class_="warning", message="m", docs=f"checks#{kind}").link
    assert link == f"`fmapboard docs checks#{kind}`"
    with pytest.raises(SystemExit) as done:
        run(link.strip("`").split()[1:])
    shown = capsys.readouterr().out
    assert (done.value.code, shown.splitlines()[0].lstrip("# ")) == (0, kind)
    assert len(shown) > 80
    assert shown.count("\n#") == 0


def test_a_finding_of_a_users_check_names_no_section() -> None:
    mine = Finding(kind="mine", class_="warning", message="a fault", advice="Stop")
    assert (mine.link, mine.text) == ("", "a fault. Stop")


def test_a_page_is_printed_whole_and_may_be_named_as_in_the_readme(
    capsys: pytest.CaptureFixture[str],
) -> None:
    texts = []
    for place in ("checks", "docs/checks.md"):
        print_docs(place)
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert texts[0].startswith("# What fmapboard checks\n")


def test_the_page_for_agents_is_printed_without_its_head_and_is_short(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_docs("agents")
    shown = capsys.readouterr().out
    assert shown.startswith("# For agents\n")
    assert len(shown.splitlines()) <= 60


def test_in_a_pipe_on_windows_characters_that_its_encoding_lacks_are_escape_sequences(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipe = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", pipe)
    with pytest.raises(SystemExit) as done:
        run(["docs", "agents"])
    assert (done.value.code, pipe.errors) == (0, "strict")
    pipe.flush()
    assert b"kind of check \\u2192 why" in pipe.buffer.getvalue()


def test_what_a_stream_does_with_characters_that_it_lacks_is_as_before_if_the_command_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", pipe)
    with pytest.raises(SystemExit) as done:
        run(["docs", "agent"])
    assert (done.value.code, pipe.errors) == (2, "strict")
    assert "agents" in capsys.readouterr().err


class _Closed(io.BytesIO):
    def write(self, data: object) -> int:
        raise BrokenPipeError


def test_a_reader_that_is_gone_does_not_hide_the_error_of_a_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(place: str) -> None:
        print("printed, but not flushed")
        raise ConfigurationError(f"no page {place}")

    monkeypatch.setattr("fmapboard.cli.commands.docs.print_docs", fail)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(_Closed(), encoding="utf-8"))
    with pytest.raises(SystemExit) as done:
        run(["docs", "mine"])
    monkeypatch.undo()
    assert done.value.code == 2
    assert capsys.readouterr().err == "fmapboard: no page mine\n"


def test_without_a_page_all_are_listed_with_their_titles(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_docs(None)
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert ["checks", "What fmapboard checks"] in lines
    assert ["recipes", "Recipes"] in lines
    assert ["agents", "For agents"] in lines
    names = dict(line for line in lines if len(line) == 2)
    assert "README" not in names
    assert not [name for name in names if name.startswith("checks/")]


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("chekcs", "no page 'chekcs'; closest: checks"),
        ("x", "no page 'x'; fmapboard docs lists them"),
        ("checks#daed", "no section 'daed'; closest: dead"),
        (
            "checks#xyzzy",
            "no section 'xyzzy'; its first ones: what-fmapboard-checks, "
            "where-findings-appear, warnings, notes, attended_padding, attention_logits",
        ),
    ],
)
def test_what_is_not_there_is_answered_with_what_is(
    place: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as done:
        run(["docs", place])
    said = capsys.readouterr().err
    assert (done.value.code, said.partition(" and ")[0].rstrip()) == (2, f"fmapboard: {text}")


def test_a_comment_in_code_is_no_heading() -> None:
    assert section("## a\n```sh\n# b\n```\n## b\nx", "b") == "## b\nx"
