"""The address that ``fmapboard serve`` prints opens TensorBoard at the Feature maps tab."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from browser_visitor import PATIENCE_MS, frame_of
from two_layer_runs import log_steps

from fmapboard.cli.commands.serve import server_command


def test_the_printed_address_opens_the_feature_maps_tab(browser: Any, tmp_path: Path) -> None:
    log_steps(tmp_path / "run", steps=[0])
    command = server_command(tmp_path, 0, opens=False)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        page = browser.new_page()
        try:
            address = server.stdout.readline().split()[-1]
            page.goto(address)
            selected = page.get_by_role("tab", selected=True)
            selected.wait_for(timeout=PATIENCE_MS)
            assert selected.inner_text().strip().lower() == "feature maps"
            ready = "() => document.documentElement.dataset.ready === 'true'"
            frame_of(page).wait_for_function(ready, timeout=PATIENCE_MS)
            assert page.url.startswith(address)
        finally:
            page.close()
            server.terminate()
