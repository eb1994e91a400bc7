"""Folders that ``save_pretrained`` of transformers has written, as names of models."""

from __future__ import annotations

import ast
import os
from pathlib import Path

from fmapboard.cli.models.messages import few
from fmapboard.errors import UnknownModel

_CONFIG = "config.json"


def is_path(name: str) -> bool:
    """True if a model's name is written as a path, or is that of an existing file or folder.

    A name on the hub contains at most one slash, and a folder of that name goes first.

    >>> [is_path(name) for name in ("./net", "~/nets/mine", "resnet50", "microsoft/resnet-50")]
    [True, True, False, False]
    """
    if name.startswith((".", os.sep, "~")) or name.endswith(os.sep) or name.count(os.sep) > 1:
        return True
    return Path(name).is_file() or (os.sep in name and Path(name).is_dir())


def is_saved_model(name: str) -> bool:
    """True if a name is that of a folder that ``save_pretrained`` has written."""
    return Path(name, _CONFIG).is_file()


def saved_folder(name: str) -> str:
    """The folder of a model whose name is a path.

    Raises:
        UnknownModel: there is no such folder, or no configuration in it; the message names folders
            in it that have one.
    """
    folder = Path(name).expanduser()
    if folder.is_file() and folder.suffix == ".py":
        raise UnknownModel(_of_python(name, folder))
    if folder.is_file():
        raise UnknownModel(
            f"{name!r} is a file; give the network as --model NAME and the file as --checkpoint"
        )
    if not folder.is_dir():
        raise UnknownModel(f"no such folder: {name!r}")
    if is_saved_model(str(folder)):
        return str(folder)
    inside = sorted(str(path.parent) for path in folder.glob(f"*/{_CONFIG}"))
    advice = f"; did you mean {few(inside)}?" if inside else ""
    raise UnknownModel(
        f"no {_CONFIG} in {name!r}: expected a folder written by save_pretrained (for weights "
        f"alone: --model NAME --checkpoint FILE){advice}"
    )


def _of_python(name: str, file: Path) -> str:
    """The message about a Python file where a network's name is expected."""
    where = "" if file.parent == Path() else f", in the folder {str(file.parent)!r}"
    try:
        nodes = ast.parse(file.read_bytes()).body
    except (SyntaxError, ValueError):
        nodes = []
    classes = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    functions = [node.name for node in nodes if isinstance(node, ast.FunctionDef)]
    known = [f"{word} {few(names, 6)}" for word, names in
             (("classes", classes), ("functions", functions)) if names]  # fmt: skip
    first = [*classes, *functions, "Net"][0]
    listed = f"; its {', its '.join(known)}" if known else ""
    return (
        f"{name!r} is a Python file: name the network in it, such as --model {file.stem}:{first}"
        f"{where}{listed}"
    )
