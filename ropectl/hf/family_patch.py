"""Which config a family can carry a method in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.method import RopeConfigPatch, ScalingMethod


def family_patch(
    method: ScalingMethod, geometry: RopeGeometry, config_section: Mapping[str, Any], seq_len: int | None = None
) -> RopeConfigPatch:
    """Returns the config of a method for a family."""
    return method.config_patch(geometry, seq_len)
