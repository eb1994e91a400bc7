"""The documentation site builds without a warning."""

from __future__ import annotations

from pathlib import Path

import pytest
import warm_python

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(600)
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    for module in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(module, reason="the extra docs is not installed")
    program = "import sys; from sphinx.cmd.build import main; sys.exit(main(sys.argv[1:]))"
    options = ("-q", "-W", "--keep-going", "docs", tmp_path)
    done = warm_python.run(program, *options, cwd=ROOT, timeout=500)
    assert done.returncode == 0, done.stderr
    for page in ("index", "get_started", "recipes", "reference/training", "contributing"):
        assert (tmp_path / f"{page}.html").stat().st_size > 10_000
    assert "begin_step" in (tmp_path / "reference" / "training.html").read_text()
