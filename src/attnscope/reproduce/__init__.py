"""The papers, run again: each experiment is a function that writes a report with the paper's claims, judged."""

from collections.abc import Callable

from .abnar2020 import reproduce_abnar2020
from .claims import Claim as Claim
from .claims import read_claims as read_claims
from .snell2021 import reproduce_snell2021
from .sun2020 import reproduce_sun2020
from .vig2019 import reproduce_vig2019
from .writing import Reproduction as Reproduction
from .writing import compare as compare
from .wu2020 import reproduce_wu2020

EXPERIMENTS: dict[str, Callable[..., Reproduction]] = {
    "vig2019": reproduce_vig2019,
    "abnar2020": reproduce_abnar2020,
    "wu2020": reproduce_wu2020,
    "sun2020": reproduce_sun2020,
    "snell2021": reproduce_snell2021,
}
"""Every experiment by the name of its paper."""
