"""A test is found by its path: unit tests are named after the module or package that they test."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src" / "fmapboard"
UNIT = TESTS / "unit"


def names_in(package: Path) -> set[str]:
    """The modules of a package; also its subpackages, and for the command line their modules."""
    modules = {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}
    subpackages = {path.parent for path in package.glob("*/__init__.py")}
    if package.name == "cli":
        modules |= names_in(package / "commands")
    return modules | {path.name for path in subpackages}


def is_named_after_one(test: Path) -> bool:
    """True if ``test_<name>[_<subject>].py`` names a module of its package, or the package."""
    package = SOURCE / test.parent.relative_to(UNIT)
    subject = test.stem.removeprefix("test_")
    names = names_in(package)
    if package != SOURCE:
        names.add(package.name)
    return any(subject == name or subject.startswith(f"{name}_") for name in names)


def test_each_unit_test_is_named_after_a_module_of_its_package() -> None:
    tests = sorted(UNIT.rglob("test_*.py"))
    assert tests
    wrong = [test.relative_to(UNIT).as_posix() for test in tests if not is_named_after_one(test)]
    assert wrong == []


def test_the_slow_and_the_longest_tests_are_at_the_paths_that_are_listed(
    pytestconfig: pytest.Config,
) -> None:
    settings = pytestconfig.pluginmanager.get_plugin(str(TESTS / "conftest.py"))
    listed = {*settings.SLOW, *settings.SWEEPS, *settings.LONGEST}
    assert [path for path in sorted(listed) if not (TESTS / path).exists()] == []
