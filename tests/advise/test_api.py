"""The same advice from Python as from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from ropectl import choose_methods, inspect_model
from ropectl.advise.requests import ChoiceSettings, InspectSettings
from ropectl.errors import ConfigError

Run = Callable[..., tuple[int, str, str]]
GEOMETRY = "rotary_dim=64,rope_theta=10000,original_max_position_embeddings=2048"


def test_choice(ropectl: Run) -> None:
    record = choose_methods(ChoiceSettings(target_length=2048, tuning="light", runtime="vllm"))
    _, out, _ = ropectl(
        "methods", "--choose", "--target-length", "2k", "--tuning", "light", "--runtime", "vllm", "--format", "json"
    )
    assert record == json.loads(out) and record["picks"]


def test_inspection(ropectl: Run) -> None:
    records = inspect_model(InspectSettings(methods=("pi", "yarn"), factor=4, geometry=GEOMETRY))
    _, out, _ = ropectl(
        "inspect", "-m", "pi", "-m", "yarn", "--factor", "4", "--geometry", GEOMETRY, "--format", "json"
    )
    assert json.loads(json.dumps(records)) == json.loads(out) and len(records) == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (ChoiceSettings(), "needs the length"),
        (ChoiceSettings(model="builtin:tiny", geometry=GEOMETRY, target_length=4096), "gives all numbers itself"),
    ],
)
def test_what_cannot_be_chosen(settings: ChoiceSettings, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        choose_methods(settings)


def test_a_factor_needs_a_method() -> None:
    with pytest.raises(ConfigError, match="need a method"):
        inspect_model(InspectSettings(factor=4))
