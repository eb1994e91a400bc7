"""Train three networks and write the report of each as a site: python examples/samples/make.py DIR

One learns, one dies at a rate that is too high, one has a softmax in front of the loss that applies
it again. DIR/index.html links to all three, and opens from disk.
"""

import html
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import nn
from torch.nn import functional

import fmapboard
from fmapboard.demo.photographs import Photographs

STEPS, EVERY = 160, 8
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Sample reports of fmapboard</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto }
  li { margin: 1rem 0 } code { white-space: pre-wrap }
</style>
<h1>Sample reports of fmapboard</h1>
<p>Three trainings on the same images. Each opens as TensorBoard shows it.</p>
<ul>
"""


def network(classes: int) -> nn.Sequential:
    torch.manual_seed(0)
    layers = []
    for inputs, outputs in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def train(run: Path, rate: float, *, is_softmax_twice: bool) -> None:
    photographs = Photographs.load()
    model = network(len(photographs.names))
    if is_softmax_twice:
        model.append(nn.Softmax(dim=1))
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    source = torch.Generator().manual_seed(1)
    probe = photographs.training_batch(1, torch.Generator().manual_seed(4))[0]
    with fmapboard.watch(model, run, optimizer=optimizer, every=EVERY, probe=probe):
        for _ in range(STEPS):
            images, labels = photographs.training_batch(32, source)
            loss = functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def command(*arguments: str) -> str:
    called = [sys.executable, "-X", "utf8", "-m", "fmapboard", *arguments]
    done = subprocess.run(called, capture_output=True, encoding="utf-8")
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(done.stderr)
    return done.stdout


def main(site: Path) -> None:
    items = []
    with TemporaryDirectory() as folder:
        for name, rate, is_softmax_twice in (
            ("healthy", 0.003, False),
            ("dying", 0.3, False),
            ("softmax_twice", 0.003, True),
        ):
            run = Path(folder) / name
            train(run, rate, is_softmax_twice=is_softmax_twice)
            command("report", str(run), "--site", str(site / name), "--steps", "12")
            why = command("why", str(run)).replace(str(run), name)
            first = html.escape("\n".join(why.splitlines()[:2]))
            items.append(f'<li><a href="{name}/index.html">{name}</a><br><code>{first}</code></li>')
    (site / "index.html").write_text(PAGE + "\n".join(items) + "\n</ul>\n</html>\n", "utf-8")
    print(site / "index.html")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
