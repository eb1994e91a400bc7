"""The front end's files as one script and one style sheet."""

from __future__ import annotations

import re
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

_IMPORT = re.compile(r'^import (?:\{([^}]*)\}|\* as (\w+)) from "([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
_EMPTY = re.compile(r"^export \{\};\n", re.MULTILINE)  # makes a file with only types a module
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_IMPORTED = re.compile(r'^@import url\("([^"]+)"\);\n', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Module:
    imports: list[tuple[str, str]]
    """Name of each imported module, and the pattern by which `const` takes from its exports."""
    exports: list[str]
    body: str


def script(folder: Path, entry: str) -> str:
    """The module ``entry`` and everything that it imports as one ES module with its exports.

    Args:
        folder: of the modules.
        entry: name of the first module, which lies in ``folder`` itself; the browser must load
            the result from that place.

    Raises:
        ValueError: a module has an import or export of an unknown form.
        graphlib.CycleError: modules import each other in a circle.
    """
    modules: dict[str, _Module] = {}
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        if name not in modules:
            modules[name] = _read(folder, name)
            waiting += [imported for imported, _ in modules[name].imports]
    needs = {name: [n for n, _ in module.imports] for name, module in modules.items()}
    order = list(TopologicalSorter(needs).static_order())
    variable = {name: f"module{index}" for index, name in enumerate(order)}
    parts = []
    for name in order:
        module = modules[name]
        given = [f"  const {p} = {variable[n]};\n" for n, p in module.imports]
        exported = ", ".join(module.exports)
        parts.append(
            f"// {name}\nconst {variable[name]} = (() => {{\n"
            f"{''.join(given)}{module.body}\nreturn {{ {exported} }};\n}})();\n"
        )
    names = ", ".join(modules[entry].exports)
    return f"{''.join(parts)}export const {{ {names} }} = {variable[entry]};\n"


def _read(folder: Path, name: str) -> _Module:
    text = folder.joinpath(name).read_text("utf-8")
    imports = []
    for names, everything, path in _IMPORT.findall(text):
        found = (folder / name).parent.joinpath(path).resolve().relative_to(folder.resolve())
        taken = everything or f"{{{names.replace(' as ', ': ')}}}"
        imports.append((found.as_posix(), taken))
    text = _EMPTY.sub("", _IMPORT.sub("", text))
    exports = _EXPORT.findall(text)
    text = _EXPORT.sub("", text)
    if other := _OTHER.search(text):
        raise ValueError(f"{name}: cannot bundle {other[0]!r}")
    own = f'new URL("{name}", import.meta.url).href'
    return _Module(imports, exports, text.replace("import.meta.url", own))


def styles(folder: Path, entry: str) -> str:
    """The style sheet ``entry`` with the ones that it imports in front, in their order."""
    text = folder.joinpath(entry).read_text("utf-8")
    before = [folder.joinpath(name).read_text("utf-8") for name in _IMPORTED.findall(text)]
    return "".join([*before, _IMPORTED.sub("", text)])


ENTRY = "/index.js"
"""The module that TensorBoard imports in the tab's frame."""

FOLDER = Path(__file__).with_name("static")

# `mimetypes` would read the Windows registry, where other programs may have set wrong types.
_SCRIPT, _STYLES = "text/javascript", "text/css"


def static_files() -> dict[str, tuple[str, str]]:
    """Path -> text and content type, read once, when TensorBoard starts.

    Raises:
        FileNotFoundError: a file is missing, so the installation is incomplete.
        ValueError: see `script`.
    """
    try:
        return {
            ENTRY: (FOLDER.joinpath(ENTRY[1:]).read_text("utf-8"), _SCRIPT),
            "/app.js": (script(FOLDER, "app.js"), _SCRIPT),
            "/style.css": (styles(FOLDER, "style.css"), _STYLES),
        }
    except OSError as error:
        raise FileNotFoundError(f"no {error.filename}; reinstall fmapboard") from error
