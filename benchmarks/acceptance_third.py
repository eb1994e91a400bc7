"""The third acceptance set of ``fmapboard check``, written without knowledge of its rules.

Each training ends with a lower loss, also in eval mode where the network has BatchNorm: the table
has both. Two were not as planned: of "gatys", whose network is frozen, nothing is logged, because
no parameter of the watched network needs a gradient; and in "rays" half of the units of a layer are
really dead after the training (22 to 29 of 48 over 160,000 places at three seeds), without harm.
"""

from __future__ import annotations

import acceptance_third_adversarial as adversarial
import acceptance_third_combined as combined
import acceptance_third_frameworks as frameworks
import acceptance_third_selfsup as selfsup
import acceptance_third_tuning as tuning
from acceptance_case import HealthyCase
from acceptance_third_sets import SHARED

OWN = {
    "mean_teacher": ("student and teacher, both watched", "SGD", 80, 8, selfsup.mean_teacher),
    "fix_match": ("residual CNN", "FixMatch", 80, 8, selfsup.fix_match),
    "data2vec": ("student and teacher in one", "data2vec", 80, 8, selfsup.feature_targets),
    "style_based": ("StyleGAN", "R1, two Adams", 100, 8, adversarial.style_based),
    "pix2pix_hd": ("pix2pixHD", "two discriminators", 60, 6, adversarial.feature_matching),
    "tent": ("residual CNN", "Tent, norms only", 60, 6, tuning.at_test_time),
    "gatys": ("frozen network", "Gatys, the picture learns", 100, 10, tuning.painted),
    "maml": ("CNN, no norm", "MAML, second order", 60, 6, combined.maml),
    "surgery": ("two-task CNN", "PCGrad", 80, 8, combined.surgery),
    "manual_gan": ("SRGAN", "Lightning, manual", 60, 6, frameworks.manual_gan),
    "swa": ("timm ResNet", "Lightning, SWA", 64, 6, frameworks.stochastic_average),
    "fabric": ("timm EfficientNet", "Fabric, bfloat16", 64, 6, frameworks.fabric),
    "ignite_ema": ("residual CNN", "ignite, EMA, accumulation", 64, 6, frameworks.ignite_ema),
    "muon": ("timm ViT", "Muon and AdamW", 80, 8, frameworks.muon),
    "early_stop": ("residual CNN", "epochs, plateau, best weights", 80, 8, frameworks.early_stop),
}

THIRD: dict[str, HealthyCase] = {
    **SHARED,
    **tuning.TUNED,
    **combined.COMBINED,
    **{name: HealthyCase(*parts) for name, parts in OWN.items()},
}
