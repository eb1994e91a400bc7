"""The second acceptance set of ``fmapboard check``: other networks, recipes and ways to log.

Its author had read neither the checks nor their thresholds. Most trainings are as users write them
today: library models, self-supervision, generative models, frozen and half-frozen networks.

Two turned out not to be healthy. "foggy_plain" (low contrast, not centred, no normalization layer)
does not learn. "tv_mnasnet" learns, but after these few steps its BatchNorm layers, whose momentum
is torchvision's 3e-4, have running statistics with which it is at chance in eval mode.
"""

from __future__ import annotations

import acceptance_later_frameworks as frameworks
import acceptance_later_loops as loops
import acceptance_later_training as training
from acceptance_case import HealthyCase, case
from acceptance_later_networks import NETS
from acceptance_later_sets import LIBRARY, RECIPES

OWN = {
    "wgan": ("WGAN-GP", "n_critic 3, two Adams", 240, 8, loops.wasserstein),
    "cyclegan": ("CycleGAN", "one Adam for two generators", 60, 5, loops.cycles),
    "moco": ("MoCo", "slow copy and queue inside", 120, 8, loops.momentum_contrast),
    "dino": ("DINO", "teacher inside, last layer frozen at first", 120, 8, loops.self_distillation),
    "prototypes": ("prototypical network", "episodes", 100, 5, loops.prototypes),
    "dann": ("DANN", "gradient reversal", 120, 8, loops.domains),
    "reinforce": ("encoder CNN", "REINFORCE bandit", 200, 10, loops.policy_gradient),
    "reptile": ("encoder CNN, no norm", "Reptile, no optimizer", 36, 3, loops.reptile),
    "unfreeze": ("bundled network", "unfrozen step by step", 90, 10, training.UNFREEZE),
    "probe": ("bundled network", "linear probe in eval mode", 90, 5, training.PROBE),
    "resumed_500": ("encoder CNN", "logged from step 500 on", 80, 5, training.RESUMED),
    "few_logged": ("transformers ConvNeXt v2", "four logged steps", 100, 25, training.FEW),
    "powers": ("timm ByobNet", "logged at powers of two", 129, 15, training.POWERS),
    "lora": ("bundled network", "LoRA in eval mode", 80, 8, training.LORA),
    "pruned": ("bundled network", "a quarter of the channels pruned", 80, 8, training.PRUNED),
    "quantized": ("CNN, fake quantization", "Adam 1e-3", 100, 10, training.QUANTIZED),
    "micro_steps": (
        "encoder CNN, no norm",
        "micro-batches as steps",
        240,
        13,
        training.micro_steps,
    ),
    "epochs": ("encoder CNN", "a step is an epoch with validation", 12, 1, training.epochs),
    "in_backward": ("encoder CNN", "optimizers in backward", 120, 10, training.in_backward),
    "averaged": ("encoder CNN", "SWA and EMA", 120, 8, training.averaged),
    "scaler": ("encoder CNN", "GradScaler, bfloat16", 100, 8, training.scaled_half),
    "tasks": ("two-task encoder", "uncertainty weights", 100, 8, training.several_tasks),
    "hf_trainer": ("transformers ConvNeXt v2", "Trainer", 80, 8, frameworks.hf_trainer),
    "lightning": ("timm EfficientNet", "Lightning", 100, 10, frameworks.pl_trainer),
    "accelerate": ("encoder CNN", "accelerate", 80, 5, frameworks.hf_accelerate),
    "ignite": ("encoder CNN", "ignite", 128, 10, frameworks.ignite_engine),
}

LATER: dict[str, HealthyCase] = {
    **{name: case(*parts) for name, parts in (LIBRARY | NETS | RECIPES).items()},
    **{name: HealthyCase(*parts) for name, parts in OWN.items()},
}
