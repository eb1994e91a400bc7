"""Train the network that ships with fmapboard and write its weights.

    python assets/make_demo_network.py

The demonstration's own loop, for longer: about a minute and a half. It writes a plain state dict
to assets/bundled/demo_network.pt, in float16, which halves the file, and prints the accuracy on
held-out crops.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from rich.progress import Progress

from fmapboard.demo.network import DemoNetwork
from fmapboard.demo.photographs import Photographs
from fmapboard.demo.training import train


def main() -> None:
    """Train, write, say how good it is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500, help="optimizer steps")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and the crops")
    bundled = Path(__file__).with_name("bundled") / "demo_network.pt"
    parser.add_argument("--out", type=Path, default=bundled, help="where the weights go")
    options = parser.parse_args()
    network = DemoNetwork(seed=options.seed)
    with Progress() as progress:
        bar = progress.add_task("training", total=options.steps)
        result = train(
            network,
            Photographs.load(),
            steps=options.steps,
            seed=options.seed,
            on_step=lambda step, loss: progress.update(bar, completed=step + 1),
        )
    state = network.state_dict()
    rounded = {name: v.half() if v.is_floating_point() else v for name, v in state.items()}
    torch.save(rounded, options.out)
    print(
        f"{options.out}: {options.out.stat().st_size / 1000:.0f} kB; {result.steps} steps in "
        f"{result.seconds:.0f} s; {result.accuracy:.1%} of the held-out crops right "
        f"(chance {result.chance:.1%})"
    )


if __name__ == "__main__":
    main()
