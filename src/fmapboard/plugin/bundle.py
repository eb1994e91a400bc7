"""The front end's files as one script and one style sheet."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import islice
from pathlib import Path

from fmapboard.plugin import minify
from fmapboard.plugin.minify import Token, Variable

_IMPORT = re.compile(r'^import (?:\{([^}]*)\}|\* as (\w+)) from "([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
_EMPTY = re.compile(r"^export \{\};\n", re.MULTILINE)  # makes a file with only types a module
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_IMPORTED = re.compile(r'^@import url\("([^"]+)"\);\n', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Module:
    imports: list[tuple[str, dict[str, str]]]
    """Name of each imported module, and local name -> its name there, ``*`` for all of it."""
    exports: list[str]
    tokens: list[Token]


def script(folder: Path, entry: str) -> str:
    """The module ``entry`` and everything that it imports as one ES module with its exports.

    Comments and indentation are left out, and variables have short names: all that is declared
    outside of functions one of its own, other variables one per name and statement of a module.
    What is in ``vendor`` stays as it is. The line ``// <name>`` stands ahead of each module.

    Args:
        folder: of the modules.
        entry: name of the first module, which lies in ``folder`` itself; the browser must load
            the result from that place.

    Raises:
        ValueError: a module has an import or export of an unknown form, or see `minify.tokens_of`.
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
    variables = {name: list(minify.variables_of(modules[name].tokens)) for name in order}
    owners = {name: _owners(name, modules[name], variables[name]) for name in order}
    local = {name: minify.numbers_of(variables[name], owners[name]) for name in order}
    most = max((number + 1 for of in local.values() for number in of.values()), default=0)
    names = minify.short_names()
    inside = list(islice(names, most))
    uses = Counter(owners[n].get(v.name) for n in order for v in variables[n])
    uses.update(owner for of in owners.values() for owner in of.values())
    del uses[None]
    short = dict(zip((each for each, _ in uses.most_common()), names, strict=False))
    parts = []
    for name in order:
        of, tokens = owners[name], list(modules[name].tokens)
        for each in variables[name]:
            token, owner = tokens[each.at], of.get(each.name)
            new = short[owner] if owner else inside[local[name][each.at]]
            text = new + token.text[len(each.name) :]
            text = f"{each.name}:{text}" if each.is_key_too else text
            tokens[each.at] = Token(token.gap, text, token.kind)
        pairs = ",".join(
            f"{n}:{short[name, n]}" for n in modules[name].exports if (name, n) in short
        )
        code = minify.joined(tokens)
        if name.startswith("vendor/"):
            code = (
                f"const{{{pairs}}}=(()=>{{{code}\nreturn{{{','.join(modules[name].exports)}}}}})();"
            )
        if (name, "*") in short:
            code += f"\nconst {short[name, '*']}={{{pairs}}};"
        parts.append(f"// {name}\n{code}\n")
    given = ",".join(f"{short[entry, n]} as {n}" for n in modules[entry].exports)
    return f"{''.join(parts)}export{{{given}}};\n"


def _owners(name: str, module: _Module, variables: list[Variable]) -> dict[str, tuple[str, str]]:
    """Each variable that belongs to a module -> that module and its name there."""
    own = {each.name: (name, each.name) for each in variables if each.is_declared_outside}
    exported = {each: (name, each) for each in module.exports}
    taken = {n: (path, there) for path, of in module.imports for n, there in of.items()}
    if len({*taken.values()}) < len(taken):
        raise ValueError(f"{name}: cannot bundle two names of one import")
    return {**own, **exported, **taken}


def _read(folder: Path, name: str) -> _Module:
    text = folder.joinpath(name).read_text("utf-8")
    imports = []
    for names, everything, path in _IMPORT.findall(text):
        found = (folder / name).parent.joinpath(path).resolve().relative_to(folder.resolve())
        taken = [each.split(" as ") for each in re.findall(r"\w+(?: as \w+)?", names)]
        pairs = {everything: "*"} if everything else {each[-1]: each[0] for each in taken}
        imports.append((found.as_posix(), pairs))
    text = _EMPTY.sub("\n", _IMPORT.sub(lambda found: "\n" * found[0].count("\n"), text))
    exports = _EXPORT.findall(text)
    text = _EXPORT.sub("", text)
    if other := _OTHER.search(text):
        raise ValueError(f"{name}: cannot bundle {other[0]!r}")
    own = f'new URL("{name}",import.meta.url).href'
    text = text.replace("import.meta.url", own)
    is_vendor = name.startswith("vendor/")  # a licence must not get lost
    tokens = [Token("", text, None)] if is_vendor else minify.tokens_of(text)
    return _Module(imports, exports, tokens)


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
