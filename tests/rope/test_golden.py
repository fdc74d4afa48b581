"""Every reference vector is reproduced, and every method has some."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import all_methods, parse_method
from tests.tolerances import GOLDEN

FOLDER = Path(__file__).parent.parent / "golden"


def rows() -> list[Any]:
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        for number, row in enumerate(json.loads(path.read_text())):
            found.append(pytest.param(row, id=f"{path.stem}-{number}"))
    return found


@pytest.mark.parametrize("row", rows())
def test_reproduces_reference_vector(row: dict[str, Any]) -> None:
    actual = parse_method(row["spec"]).frequencies(RopeGeometry(**row["geometry"]), row["seq_len"])
    assert actual.inv_freq == pytest.approx(row["inv_freq"], rel=GOLDEN)
    assert actual.attention_factor == pytest.approx(row["attention_factor"], rel=GOLDEN)


def test_every_method_has_reference_vectors() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(all_methods())
