"""Imports go down the floors only; a module without a floor is refused."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "fmapboard"

FLOORS: dict[int, str] = {
    0: "errors records schema bundled",
    1: "schedule background",
    2: "palettes planes png render readback histogram nonfinite tab compose budget",
    3: "layers registry activations observe axes views reading statistics samples reduce together "
    "norms gradients probe kernels transfer threads capture extraction display clipping "
    "distributed ranks",
    4: "writers writers.protobuf writers.events writers.tensorboard writers.folder writers.memory",
    5: "settings pipeline snapshot separate batches window logger",
    6: "demo demo.network demo.photographs demo.training "
    "cli cli.main cli.visualize cli.demo cli.serve cli.table cli.directories cli.images "
    "cli.models cli.factory cli.pretrained cli.preprocessing cli.checkpoints "
    "cli.doctor cli.inspection cli.prefetch cli.delivery "
    "integrations integrations.training_run integrations.lightning integrations.transformers "
    "integrations.ignite integrations.accelerate",
}
TAB = (
    "plugin plugin.loader plugin.plugin plugin.static plugin.answers plugin.source plugin.calls "
    "plugin.cache plugin.names plugin.record plugin.series plugin.layers plugin.health plugin.maps "
    "plugin.history plugin.numbers"
)
"""The Feature maps tab: a tower beside the floors, on floor 0, and nobody else's to import."""
TOWER = set(TAB.split())
FLOOR_OF = {module: floor for floor, names in FLOORS.items() for module in names.split()}
FLOOR_OF |= dict.fromkeys(TOWER, 0)
TORCH_FREE = (
    {module for module, floor in FLOOR_OF.items() if floor < 3}
    | set(FLOORS[4].split())
    | {"cli.doctor", "cli.inspection"}
    | {"cli.main", "cli.serve", "cli.directories", "cli.images", "cli.prefetch"}
)


def modules() -> dict[str, Path]:
    """Every module of the package by its name inside it; the package itself is ''."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


def imports(path: Path) -> set[str]:
    """Full names of what a module imports at any depth, type-checking blocks included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return names


def own(names: set[str]) -> set[str]:
    """The package's own modules among imported names."""
    known = set(modules())
    inside = {name.removeprefix("fmapboard.") for name in names if name.startswith("fmapboard.")}
    return inside & known


def test_every_module_has_a_floor() -> None:
    assert set(modules()) - {""} == set(FLOOR_OF)


@pytest.mark.parametrize("module", sorted(FLOOR_OF))
def test_a_module_imports_nothing_from_a_higher_floor(module: str) -> None:
    floor = FLOOR_OF[module]
    above = {name for name in own(imports(modules()[module])) if FLOOR_OF[name] > floor}
    assert above == set()


@pytest.mark.parametrize("module", sorted(TORCH_FREE))
def test_a_room_below_torch_does_not_import_it(module: str) -> None:
    heavy = {n for n in imports(modules()[module]) if n.split(".")[0] in ("torch", "torchvision")}
    assert heavy == set()


@pytest.mark.parametrize("module", sorted(set(FLOOR_OF) - TOWER))
def test_nobody_imports_the_tab(module: str) -> None:
    allowed = {"plugin.plugin"} if module == "cli.inspection" else set()
    assert own(imports(modules()[module])) & TOWER == allowed


def test_the_tab_s_entry_point_imports_nothing_that_can_fail() -> None:
    tree = ast.parse(modules()["plugin.loader"].read_text())
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


def test_every_public_name_can_be_imported() -> None:
    import fmapboard

    for name in fmapboard.__all__:
        assert getattr(fmapboard, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        fmapboard.nonsense  # noqa: B018
