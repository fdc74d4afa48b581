"""Released files are read as their makers mean them: lengths, rotated dimensions, bases and scaling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ropectl.hf.config.source import read_config
from tests.hf.released_lengths import TRUE_OF


@pytest.mark.parametrize("name", TRUE_OF)
def test_what_is_true_of_a_released_file(name: str, tmp_path: Path) -> None:
    true = TRUE_OF[name]
    (tmp_path / "config.json").write_text(json.dumps(true.file))
    rope = read_config(str(tmp_path)).rope
    geometry = rope.geometry
    assert (geometry.original_max_position_embeddings, geometry.rotary_dim, geometry.rope_theta) == (
        true.trained, true.dims, true.theta,
    )  # fmt: skip
    assert rope.max_position_embeddings == (true.declared or true.trained)
    assert rope.layer_type == true.layers
    assert len(rope.warnings) == bool(true.remark) and all(true.remark in warning for warning in rope.warnings)
    spec: Any = str(rope.method)
    assert spec == true.method or (true.method == "longrope" and spec.startswith("longrope:"))
