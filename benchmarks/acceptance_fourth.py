"""The fourth acceptance set of ``fmapboard check``, written without knowledge of its rules.

Each training ends with a lower loss, also in eval mode where the network has BatchNorm: the table
has both. A training whose loss in eval mode misses half of the progress counts as not healthy. Not
as planned: "line_search" ends at a loss of 9e-8 on its 128 examples, with weights that grow.
"""

from __future__ import annotations

import acceptance_fourth_loops as loops
from acceptance_case import HealthyCase
from acceptance_fourth_loop import FourthCase
from acceptance_fourth_sets import SHARED

OWN = {
    "line_search": ("tanh CNN", "L-BFGS, strong Wolfe, 128 examples", 40, 4, loops.line_search),
    "plateau": ("encoder CNN", "plateau of the eval loss, marked", 100, 10, loops.plateau),
    "began": ("BEGAN", "autoencoder as critic", 80, 8, loops.equilibrium),
    "projection": ("projection GAN", "hinge, conditional BatchNorm", 80, 8, loops.projected),
    "student": ("SiLU CNN", "noisy student", 70, 7, loops.student),
    "q_learning": ("DQN's network", "double DQN, slow target", 150, 15, loops.q_learning),
    "thawed": ("encoder CNN", "head, then all, two optimizers", 90, 5, loops.thawed),
    "predictive": ("CPC", "InfoNCE over rows", 80, 8, loops.pretext),
}
MODERATE = ("projection",)

FOURTH: dict[str, HealthyCase] = {
    **SHARED,
    **{n: FourthCase(*parts, falls=n not in MODERATE) for n, parts in OWN.items()},
}
