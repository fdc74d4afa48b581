"""How much training there will be: what a choice of methods depends on beside the geometry."""

from enum import Enum


class Tuning(str, Enum):
    """How much training there will be."""

    none = "none"
    #: Some hundred steps.
    light = "light"
    #: As long as it takes.
    full = "full"
