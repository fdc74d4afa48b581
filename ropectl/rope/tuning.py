"""The amount of training that is planned, on which a choice of methods depends in addition to the geometry."""

from enum import Enum


class Tuning(str, Enum):
    """The amount of training that is planned."""

    none = "none"
    #: Some hundred steps.
    light = "light"
    #: As long as needed.
    full = "full"
