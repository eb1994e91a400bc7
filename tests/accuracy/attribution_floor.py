"""Measure how small a gradient can be before its map is made of rounding errors.

    python tests/accuracy/attribution_floor.py [--steps N]

A network of each kind is trained on crops of the bundled photographs. Its logits are then scaled
up, so that the loss of samples that it classifies correctly goes to 0, and the maps of the first
and of the last layer are computed in float32 and in float64. Printed, by the gain on which
``summary.attributions.NEGLIGIBLE`` decides (sum of a map times the size of the batch): the number
of samples, the share of the float32 maps that are empty, and of the others the median and the worst
correlation with float64. Before that, the gains in the trained network as it is.
"""

from __future__ import annotations

import argparse
import copy
import json
import math

import numpy as np
import torch
from attribution_networks import KNOWN, Crops
from torch import Tensor, nn
from torch.nn import functional

ENDS = {"demo": ("relu1", "relu4"), "functional": ("layers.0", "layers.2"), "plain": ("2", "19")}
"""First and last layer with attribution."""

FACTORS = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0)
BATCH, RATE = 64, 0.02


def maps(
    model: nn.Module, layer: str, images: Tensor, labels: Tensor, factor: float, dtype: torch.dtype
) -> np.ndarray:
    """Attribution in eval mode, f64 [N, H, W]."""
    twin, seen = copy.deepcopy(model).to(dtype).eval(), list[Tensor]()

    def keep(module: nn.Module, args: object, output: Tensor) -> Tensor:
        seen.append(output)
        return output.clone()  # an operation behind it must not overwrite the output

    twin.get_submodule(layer).register_forward_hook(keep)
    loss = functional.cross_entropy(twin(images.to(dtype)) * factor, labels)
    (gradient,) = torch.autograd.grad(loss, seen[-1:])
    found: np.ndarray = (torch.relu(-gradient) * seen[-1].detach()).sum(1).double().numpy()
    return found


def main() -> None:
    """Print one JSON object per line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=320)
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = Crops()
    for name, make in KNOWN.items():
        torch.manual_seed(0)
        made, model = torch.Generator().manual_seed(0), make()
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
        for _ in range(options.steps):
            images, labels = data.training(32, made)
            optimizer.zero_grad()
            functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        images, labels = data.training(BATCH, made)
        for layer in ENDS[name]:
            found: dict[int, list[float]] = {}
            for factor in FACTORS:
                ours = maps(model, layer, images, labels, factor, torch.float32)
                real = maps(model, layer, images, labels, factor, torch.float64)
                gains = np.maximum(real, 0).sum((1, 2)) * BATCH
                if factor == 1:
                    quantiles = np.quantile(gains, (0, 0.1, 0.5, 0.9)).tolist()
                    print(json.dumps({"network": name, "layer": layer, "gains": quantiles}))
                for one, other, gain in zip(ours, real, gains, strict=True):
                    if gain > 0:
                        flat = one.std() == 0
                        r = math.nan if flat else np.corrcoef(one.ravel(), other.ravel())[0, 1]
                        found.setdefault(math.floor(math.log10(gain)), []).append(float(r))
            for power in sorted(found):
                values = np.array(found[power])
                known = values[~np.isnan(values)]
                row = {"network": name, "layer": layer, "gain": f"1e{power} to 1e{power + 1}"}
                worst = (
                    [round(float(f(known)), 4) for f in (np.median, np.min)] if len(known) else []
                )
                empty = round(float(np.isnan(values).mean()), 3)
                print(
                    json.dumps({**row, "maps": len(values), "empty": empty, "r": worst}), flush=True
                )


if __name__ == "__main__":
    main()
