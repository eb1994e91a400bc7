"""The script and the style sheet that the browser gets do what the separate files would do."""

from __future__ import annotations

import graphlib
import re
import subprocess
from pathlib import Path

import pytest
from node import required_node

from fmapboard.plugin import static_files


def write(folder: Path, **modules: str) -> None:
    for name, text in modules.items():
        path = folder / f"{name.replace('__', '/')}.js"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")


def run(code: str, folder: Path) -> str:
    path = folder / "app.js"
    path.write_text(code, "utf-8")
    command = [required_node(), "--input-type=module", "--eval"]
    show = "const app = await import(process.argv[1]); console.log(app.shown());"
    done = subprocess.run(
        [*command, show, path.as_uri()], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_modules_with_the_same_names_inside_keep_them_apart(tmp_path: Path) -> None:
    write(
        tmp_path,
        app='import {\n  SIZE as OTHER,\n  twice,\n} from "./data/one.js";\n'
        'import * as two from "./data/two.js";\nimport { Thing } from "./data/two.js";\n'
        "const SIZE = 1;\nexport function shown() {\n"
        "  return [SIZE, OTHER, twice(4), two.SIZE, new Thing().size];\n}\n",
        data__one="export const SIZE = 20;\nexport function twice(n) {\n  return 2 * n;\n}\n",
        data__two='import { twice } from "./one.js";\nexport const SIZE = twice(150);\n'
        "export class Thing {\n  size = 4000;\n}\nexport {};\n",
    )
    assert run(static_files.script(tmp_path, "app.js"), tmp_path) == "[ 1, 20, 8, 300, 4000 ]"


def test_a_module_knows_the_address_that_it_would_have_alone(tmp_path: Path) -> None:
    write(
        tmp_path,
        app='import { BASE } from "./data/api.js";\nexport const shown = () => BASE.href;\n',
        data__api='export const BASE = new URL("../data/", import.meta.url);\n',
    )
    said = run(static_files.script(tmp_path, "app.js"), tmp_path)
    assert said == f"{(tmp_path / 'data').as_uri()}/"


@pytest.mark.parametrize(
    "line",
    ["export default 3;", 'export * from "./b.js";', "export let n = 1;", 'import "./b.js";'],
)
def test_an_unknown_form_is_an_error_and_not_a_wrong_script(tmp_path: Path, line: str) -> None:
    write(tmp_path, app=f"{line}\n", b="export const b = 1;\n")
    with pytest.raises(ValueError, match=re.escape(f"app.js: cannot bundle {line!r}")):
        static_files.script(tmp_path, "app.js")


def test_a_circle_of_imports_is_an_error(tmp_path: Path) -> None:
    write(
        tmp_path,
        app='import { b } from "./b.js";\nexport const a = 1;\n',
        b='import { a } from "./app.js";\nexport const b = 2;\n',
    )
    with pytest.raises(graphlib.CycleError):
        static_files.script(tmp_path, "app.js")


def test_every_module_of_the_tab_is_in_the_script_and_every_sheet_in_the_styles() -> None:
    folder = static_files.FOLDER
    joined = static_files.script(folder, "app.js") + static_files.script(folder, "report.js")
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.js")}
    only_types = {"data/answers.js", "data/patches_answers.js"}
    parts = set(re.findall(r"^// (\S+\.js)$", joined, re.MULTILINE))
    assert parts == files - only_types - {"index.js", "report_start.js"}
    styles = static_files.styles(folder, "style.css")
    assert "@import" not in styles
    for sheet in folder.glob("*.css"):
        assert sheet.read_text("utf-8").splitlines()[-3] in styles, sheet.name
