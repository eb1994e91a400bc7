"""The fifth acceptance set of ``fmapboard check``, written without knowledge of its rules.

All trainings are healthy and share the loop of `acceptance_case.fit`; each is a new pair of
architecture and recipe. As in the fourth set, a training counts as healthy only if its loss falls,
and, where it has BatchNorm, also in eval mode.
"""

from __future__ import annotations

from acceptance_case import HealthyCase
from acceptance_fifth_sets import CLASSES
from acceptance_fifth_tables import LIBRARY, PICTURES
from acceptance_fourth_sets import spread

FIFTH: dict[str, HealthyCase] = spread(CLASSES | PICTURES | LIBRARY)
