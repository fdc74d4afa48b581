"""The row of the installed transformers against what its own classes build, over every family and every type of scaling."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.hf.model.built_tables import built_tables
from ropectl.runtimes import transformers
from ropectl.runtimes.transformers import Transformers
from scripts.runtimes.rope_files import families, family_files
from tests.runtimes.cases import YARN, base_config, scaled
from tests.runtimes.cases import facts as checkpoint_facts
from tests.runtimes.test_transformers_runs import NONE, CheckpointFacts
from tests.tolerances import PARITY

pytestmark = pytest.mark.process

FAMILIES = families()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_row_is_what_the_classes_build(family: str) -> None:
    """Every family with every type of scaling, as ``patch`` writes it and as files are found in the wild."""
    subject = family_files(family)
    lengths = (subject.geometry.original_max_position_embeddings, 16_384)
    for name, config in subject.files.items():
        try:
            built = built_tables(config, subject.layer_type, lengths)
        except UnsupportedModelError:
            continue  # a text part that runs inside a larger model only
        except ConfigError:
            built = None
        for length in lengths:
            facts = CheckpointFacts(config, subject.geometry, NONE, length, "", layer_type=subject.layer_type)
            reading = Transformers().readings(facts)[-1]
            assert reading.evidence.kind == "run", name
            assert reading.loads == (built is not None), (name, reading.problems)
            assert_same(reading, built, length, name)


def assert_same(reading: Any, built: Any, length: int, name: str) -> None:
    if built is not None:
        assert reading.inv_freq == pytest.approx(built[length].inv_freq, rel=PARITY), name
        assert reading.attention_factor == pytest.approx(built[length].attention_factor, rel=PARITY), name


@pytest.fixture
def another_version(monkeypatch: pytest.MonkeyPatch) -> str:
    """A version that was not run, with the classes of the installed one."""
    monkeypatch.setattr(transformers, "installed_version", lambda: "5.99.1")
    return "5.99"


@pytest.mark.parametrize("family", ["llama", "gemma3_text", "deepseek_v3", "hunyuan_v1_dense", "phi3", "gpt_oss"])
def test_a_version_that_was_not_run_is_asked(family: str, another_version: str) -> None:
    """What it builds is what the rules of the newest version that was run say, and in their words."""
    subject = family_files(family)
    for config in list(subject.files.values())[::9]:
        facts = CheckpointFacts(config, subject.geometry, NONE, 16_384, "", layer_type=subject.layer_type)
        *_, ruled, asked = Transformers().readings(facts)
        assert (ruled.version, asked.version) == ("5.24", another_version)
        assert asked.evidence.kind == "run" and asked.evidence.date == datetime.now(timezone.utc).date().isoformat()
        assert (asked.loads, asked.rope_type, asked.problems) == (ruled.loads, ruled.rope_type, ruled.problems)
        assert asked.loads or asked.inv_freq is None
        if ruled.inv_freq is not None:
            assert asked.inv_freq == pytest.approx(ruled.inv_freq, rel=PARITY)


def test_a_form_that_was_not_run_is_asked() -> None:
    config = scaled("yarn", **YARN, beta_fast=16, mscale=0.7, mscale_all_dim=1.0)
    *_, old, row = Transformers().readings(checkpoint_facts(config, "yarn"))
    assert row.loads and row.evidence.kind == "run" and old.evidence.kind == "read"


def test_a_model_type_of_another_kind_is_absent() -> None:
    """No rule is asked what a class that does not exist would compute."""
    own = checkpoint_facts(base_config(model_type="my_model"))
    assert all(row.problems[0].code == "no-such-model-type" for row in Transformers().readings(own))
    code = checkpoint_facts(base_config(model_type="my_model", auto_map={"AutoConfig": "configuration.MyConfig"}))
    assert all(row.loads is None and row.evidence.kind == "unknown" for row in Transformers().readings(code))
