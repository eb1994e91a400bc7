"""What the README shows is what happens."""

from __future__ import annotations

import inspect
import re
from importlib import metadata
from pathlib import Path

import click
import pytest

import fmapboard
from fmapboard.cli import main
from fmapboard.logger import watch

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_two_commands_are_there_and_ci_runs_the_second() -> None:
    install = "python3 -m venv .venv && .venv/bin/pip install"
    assert f"{install} . && .venv/bin/fmapboard demo\n" in README
    tests = ".venv/bin/pytest -n 3 --dist loadfile"
    assert f"{install} '.[test]' && {tests}\n" in README
    script = (ROOT / ".ci" / "run").read_text()
    for part in (
        "python3 -m venv .venv",
        ".venv/bin/pip install --quiet '.[test]'",
        tests,
    ):
        assert part in script


def test_the_quickstart_and_the_extraction_example_run_as_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), scope)
    assert list((tmp_path / "runs" / "exp1").glob("*tfevents*"))
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert list(scope["maps"]) == [f"layer1.{b}.conv{c}" for b in (0, 1) for c in (1, 2)]
    assert len(blocks("python")[0].strip().splitlines()) <= 10


def test_the_first_screen_says_what_it_is_for_and_shows_watch_serve_check_and_the_tab() -> None:
    first = README.split("\n## ")[0]
    places = [
        first.index(text)
        for text in (
            "assets/pictures/tab_moves.webp", "**What is wrong, in words.**",
            "**What is inside.**", "**Training unchanged.**",
            "fmapboard.watch(", "\nfmapboard serve runs/exp1 ", "\nfmapboard check runs/exp1 ",
            "It is cheap", "On an H100",
        )
    ]  # fmt: skip
    assert places == sorted(places)
    assert len(first[: first.index("fmapboard why runs/exp1")].splitlines()) <= 40


def test_the_warning_that_the_readme_shows_is_the_one_that_is_logged_and_check_agrees(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    without = "[p for n, p in model.named_parameters() if n[:2] != 'fc']"
    loop = blocks("python")[0].replace("model.parameters()", without)
    exec(compile(loop, "README.md", "exec"), {})
    (shown,) = blocks("text")[0].splitlines()
    said, verdict = caplog.messages
    assert shown.endswith("…")
    assert said.startswith(shown.removesuffix("…"))
    with pytest.raises(SystemExit):
        main.run(["check", "runs/exp1"])
    said = capsys.readouterr().out
    assert "warning: not_in_optimizer: 2 trainable parameters" in said
    assert said.count("warning") == 1
    page = (ROOT / "docs" / "why.md").read_text()
    (example,) = re.findall(r"```text\n(.*?)\n```", page, re.DOTALL)
    logged = verdict.removeprefix("fmapboard: ").split("\n  ")
    pairs = zip(example.splitlines(), logged, strict=True)
    assert {one.split(": ")[0] for one, other in pairs if one != other} <= {"evidence"}


def test_every_option_in_the_table_is_one_of_watch_with_that_default() -> None:
    options = {n: p.default for n, p in inspect.signature(watch).parameters.items()}
    table = README.split("| option | effect |")[1].split("\n\n")[0]
    named = re.findall(r"`(\w+)=([^`]*)`", table)
    assert len(named) >= 7
    for name, _ in named:
        assert name in options, name
    assert [options[n] for n in ("every", "max_channels", "max_tile")] == [100, 64, 64]


def test_every_flag_in_an_example_is_one_of_visualize() -> None:
    known = {
        flag
        for parameter in main.visualize.params
        if isinstance(parameter, click.Option)
        for flag in parameter.opts
    }
    examples = [block for block in blocks("sh") if block.startswith("visualize")]
    used = set(re.findall(r"(--[a-z-]+)", "".join(examples)))
    assert used <= known
    assert {"--model", "--logdir", "--out", "--list", "--checkpoint"} <= used


def test_linked_files_exist() -> None:
    for target in re.findall(r"\]\(([^)h][^)]*)\)", README):
        assert (ROOT / target).exists(), target


def test_it_links_to_at_most_eight_pages_and_to_the_list_of_all() -> None:
    pages = set(re.findall(r"\]\(docs/(\w+)\.md", README))
    assert "index" in pages
    assert len(pages) <= 9


def test_the_picture_in_contributing_names_every_package() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    picture = text.split("## Where things are")[1].split("```")[1]
    package = ROOT / "src" / "fmapboard"
    there = {path.name for path in package.glob("*.py")} - {"__main__.py"}
    there |= {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}
    drawn = set(re.findall(r"^  (\w\S*)", picture, re.MULTILINE))
    assert drawn == there


def test_the_installed_version_is_the_one_in_the_package() -> None:
    assert metadata.version("fmapboard") == fmapboard.__version__


def test_the_picture_in_contributing_names_every_module_of_the_training_path() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    picture = text.split("## Where things are")[1].split("```")[1]
    drawn = dict(re.findall(r"^  (\w+)/ +((?:.|\n {4,})+)", picture, re.MULTILINE))
    packages = ("session", "gradients", "capture", "measure", "summary", "render", "writers")
    for package in (*packages, "model", "formats"):
        modules = (ROOT / "src" / "fmapboard" / package).glob("*.py")
        named = set(re.findall(r"\w+", drawn[package]))
        assert {path.stem for path in modules} - {"__init__"} - named == set(), package


def test_the_logged_step_in_contributing_names_modules_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    step = text.split("## One logged step")[1].split("```")[1]
    named = set(re.findall(r"\b[a-z]+/[a-z_]+", step))
    assert len(named) > 15
    missing = {n for n in named if not (ROOT / "src" / "fmapboard" / f"{n}.py").exists()}
    assert missing == set()
