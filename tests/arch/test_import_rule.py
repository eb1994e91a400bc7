"""The import rule of CONTRIBUTING.md, package by package, and what each file may be."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest
import warm_python

ROOT = Path(__file__).parents[2]
BY_HAND = ("tests/acceptance", "tests/accuracy")
PACKAGE = ROOT / "src" / "fmapboard"

ORDER = [
    *("__main__", "cli", "integrations"),
    *("auto_watch", "module_owners"),
    *("logger", "imaging", "report", "model_comparison", "top_patches", "checks"),
    *("image_passes", "interventions", "extraction", "notebook", "demo", "rehearsal"),
    *("session", "gradients", "capture", "writers", "measure", "summary", "options"),
    *("model", "render", "health", "runs", "records", "formats", "schedule", "printing", "errors"),
    *("interrupts", "arithmetic"),
]
"""Each may import the ones to its right."""

TRAINING_PATH = {
    *("session", "gradients", "capture", "measure", "summary", "render", "writers", "model"),
    *("formats", "records", "options", "schedule", "logger", "errors", "arithmetic"),
}
LONGEST_CHAIN, LONGEST_CHAIN_FROM_LOGGER = 13, 9
"""Entries of ``src/fmapboard`` of which each imports the next; a package is one entry."""

PLUGIN_MAY_IMPORT = {
    *("plugin", "health", "runs", "records", "formats", "errors", "arithmetic"),
}
WITHOUT_TORCH = {
    *("cli.main", "cli.options", "cli.run_dirs"),
    *("cli.commands.serve", "cli.commands.tab_server", "cli.commands.report", "cli.commands.check"),
    *("cli.commands.doctor", "cli.commands.doctor_probe"),
    *("imaging.images", "writers", "summary", "render"),
    *("options", "checks", "health", "runs", "schedule", "records", "formats", "errors"),
    *("plugin", "report", "arithmetic"),
}
"""Packages and modules that import neither torch nor torchvision."""
WITHOUT_TENSORBOARD = {"runs", "plugin.routes", "report", "plugin.followed"}
"""Packages that import neither TensorBoard nor werkzeug when they are imported, nor what does."""


def modules() -> dict[str, Path]:
    """Every module by its dotted name inside the package; the package itself is ''."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


MODULES = modules()
INNER = sorted(set(MODULES) - {""})


@functools.cache
def imports(path: Path) -> frozenset[str]:
    """Full names of what a module imports at any depth, type-checking blocks included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return frozenset(names)


def packages(module: str) -> set[str]:
    """Packages and top-level modules of fmapboard that a module imports."""
    own = {n.split(".")[1] for n in imports(MODULES[module]) if n.startswith("fmapboard.")}
    return own & {name.split(".")[0] for name in INNER}


def outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module that run when it is imported, type-checking blocks included."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield child
            yield from outside_functions(child)


@functools.cache
def imports_at_once(path: Path) -> frozenset[str]:
    """Full names of what a module imports outside its functions."""
    names: set[str] = set()
    for node in outside_functions(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                names.add(full if full.removeprefix("fmapboard.") in MODULES else node.module)
    return frozenset(names)


def imported_modules(module: str) -> frozenset[str]:
    """The modules of fmapboard that a module imports, those imported inside functions left out."""
    found = {name.removeprefix("fmapboard.") for name in imports_at_once(MODULES[module])}
    return frozenset(found & set(INNER))


def longest_chains(imported: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
    """Name -> the longest chain of imports that begins with it.

    Raises:
        AssertionError: some import each other in a circle, which the message lists.
    """
    chains: dict[str, list[str]] = {}

    def chain(name: str, above: tuple[str, ...] = ()) -> list[str]:
        assert name not in above, " -> ".join((*above[above.index(name) :], name))
        if name not in chains:
            below = [chain(other, (*above, name)) for other in sorted(imported[name])]
            chains[name] = [name, *max(below, key=len, default=[])]
        return chains[name]

    for name in imported:
        chain(name)
    return chains


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert longest_chains({name: imported_modules(name) for name in INNER})


def test_no_modules_import_each_other_in_a_circle_even_inside_functions() -> None:
    imported = {}
    for name in INNER:
        named = {full.removeprefix("fmapboard.") for full in imports(MODULES[name])}
        imported[name] = named & set(INNER) - {name}
    assert longest_chains(imported)


def test_a_chain_of_imports_between_packages_has_at_most_13_links_and_9_from_logger() -> None:
    entries: dict[str, set[str]] = {name.split(".")[0]: set() for name in INNER}
    for name in INNER:
        own = name.split(".")[0]
        entries[own] |= {one.split(".")[0] for one in imported_modules(name)} - {own}
    chains = longest_chains(entries)
    assert len(chains["logger"]) <= LONGEST_CHAIN_FROM_LOGGER, chains["logger"]
    longest = max(chains.values(), key=len)
    assert len(longest) <= LONGEST_CHAIN, longest


def test_every_package_is_part_of_the_rule() -> None:
    assert {name.split(".")[0] for name in INNER} <= {*ORDER, "plugin"}


def test_a_module_imports_only_packages_to_its_right() -> None:
    for module in INNER:
        package = module.split(".")[0]
        allowed = PLUGIN_MAY_IMPORT
        if package != "plugin":
            allowed = set(ORDER[ORDER.index(package) :])
        if module == "cli.commands.doctor_probe":
            allowed.add("plugin")  # it starts the tab to see whether it can be started
        if module == "cli.commands.serve":
            allowed.add("plugin")  # it starts the tab's own server
        if package == "report":
            allowed.add("plugin")  # it asks the tab's routes and embeds its front end
        assert packages(module) <= allowed, module


def test_modules_that_run_without_torch_do_not_import_it() -> None:
    for module in INNER:
        if WITHOUT_TORCH & {module, module.split(".")[0]}:
            top = {name.split(".")[0] for name in imports(MODULES[module])}
            assert top & {"torch", "torchvision"} == set(), module


def test_modules_that_run_without_tensorboard_import_nothing_that_imports_it() -> None:
    waiting = [m for m in INNER if any(f"{m}.".startswith(f"{p}.") for p in WITHOUT_TENSORBOARD)]
    reached: dict[str, str] = {}
    while waiting:
        module = waiting.pop()
        top = {name.split(".")[0] for name in imports_at_once(MODULES[module])}
        assert top & {"tensorboard", "werkzeug"} == set(), reached.get(module, module)
        for other in imported_modules(module) - reached.keys():
            reached[other] = f"{other}, imported by {module}"
            waiting.append(other)


def test_a_file_that_one_other_imports_says_in_its_first_line_what_sets_it_apart() -> None:
    importers = {
        name: [by for by in INNER if f"fmapboard.{name}" in imports(MODULES[by])]
        for name in INNER
        if MODULES[name].name != "__init__.py"
    }
    for name, by in importers.items():
        if name.split(".")[0] in TRAINING_PATH and len(by) == 1:
            text = ast.get_docstring(ast.parse(MODULES[name].read_text())) or ""
            assert "a file of its own" in text.splitlines()[0], f"{name}, imported by {by[0]}"


def test_the_import_rule_in_contributing_is_the_one_tested() -> None:
    text = " ".join((ROOT / "CONTRIBUTING.md").read_text().split())
    rule = text.split("**Import rule.**")[1].split(";")[0]
    named = [word.strip("`,") for word in rule.split() if word.startswith("`")]
    assert named == [name for name in ORDER if name != "__main__"]


def test_every_package_states_its_contract_and_a_usage() -> None:
    for path in sorted(PACKAGE.rglob("__init__.py")):
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        assert text.splitlines()[0].endswith("."), path
        if path.parent != PACKAGE:
            assert "::" in text or ">>>" in text, path  # a usage


def test_the_tabs_entry_point_imports_nothing_that_can_fail() -> None:
    tree = ast.parse(MODULES["plugin.loader"].read_text())
    at_top = {n.module for n in tree.body if isinstance(n, ast.ImportFrom)}
    at_top |= {alias.name for n in tree.body if isinstance(n, ast.Import) for alias in n.names}
    ours = {name for name in at_top if name and name.split(".")[0] not in sys.stdlib_module_names}
    assert ours == {"tensorboard.plugins"}


def test_importing_fmapboard_does_not_import_torch() -> None:
    code = (
        "import sys, fmapboard, fmapboard.cli.main\n"
        "dir(fmapboard)\n"
        "print(sorted({'torch', 'numpy', 'tensorboard', 'PIL'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_public_names_stay_the_same_and_their_first_use_changes_no_random_numbers() -> None:
    """The first access imports a module, which a module of the same name would then shadow."""
    code = (
        "import random, fmapboard\n"
        "before = random.getstate()\n"
        "for name in fmapboard.__all__:\n"
        "    for _ in range(2):\n"
        "        found = getattr(fmapboard, name)\n"
        "        assert getattr(found, '__name__', None) == name, (name, found)\n"
        "    assert random.getstate() == before, name\n"
    )
    done = warm_python.run(code)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_unknown_name_raises_an_attribute_error() -> None:
    import fmapboard

    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        fmapboard.nonsense  # noqa: B018


def test_what_scripts_beside_the_package_import_exists() -> None:
    missing = [
        f"{script.relative_to(ROOT)}: {module}.{name}"
        for folder in (*("assets", "benchmarks", "examples", "docs"), *BY_HAND)
        for script in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(script.read_text()))
        if isinstance(node, ast.ImportFrom)
        and (module := node.module or "").startswith("fmapboard.")
        for name in (alias.name for alias in node.names)
        if not _exists(module, name)
    ]
    assert missing == []


def _exists(module: str, name: str) -> bool:
    """True if a module of the package has a name, or a package has a module of this name."""
    place = PACKAGE.parent.joinpath(*module.split("."))
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    if not file.exists():
        return False
    words = {
        word.id if isinstance(word, ast.Name) else getattr(word, "name", None)
        for node in ast.parse(file.read_text()).body
        for word in (node, *ast.walk(node))
        if isinstance(word, (ast.Name, ast.FunctionDef, ast.ClassDef, ast.alias))
    }
    return name in words or (place / f"{name}.py").exists()
