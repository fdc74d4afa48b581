"""What llama.cpp is run on: every family that its converter, its loader and transformers share, in every form.

A case is a method, written as ``ropectl patch`` writes it, or a block as models are released with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scripts.tiny_models import Sizes

#: As small as the programs take it; a vocabulary of made-up tokens, which has no part in what is compared.
SIZES = Sizes(hidden=256, head=64, rank=64, vocabulary=4096, trained=256)
#: Families whose converter needs keys that transformers 5.24 drops when it loads the config.
RAW = ("gemma4_text", "gpt_neox")
#: Families whose released files name another class than transformers saves them with, and so convert otherwise.
OTHERWISE_RELEASED = ("exaone", "internlm3")
#: Standard deviation of the logits, where 1 is too much: llama.cpp takes GELU from a table of half precision.
SPREAD = {"gemma4_text": 0.2}
FACTOR, TRAINED = 4, SIZES.trained
ORIGINAL = "original_max_position_embeddings"


@dataclass(frozen=True)
class Case:
    """One thing to write into a checkpoint.

    Attributes:
        name: Name of the case; a method's spec where it is one.
        method: The method's spec; None for a block that is written as it stands.
        freeze_at: Length at which a method is frozen [tokens].
        changes: Keys of the config that differ from the family's small model.
        only: Model types that are tried with it; None for all.
    """

    name: str
    method: str | None = None
    freeze_at: int | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    only: tuple[str, ...] | None = None

    @property
    def factor(self) -> float | None:
        """The factor that the method is given; None for methods that are written without one."""
        name = (self.method or "none").partition(":")[0]
        return None if name in ("none", "abf", "dynamic-ntk", "dynamic-yarn") else FACTOR


def _method(spec: str, freeze_at: int | None = None) -> Case:
    return Case(spec if freeze_at is None else f"{spec}, frozen", spec, freeze_at)


def _released(name: str, only: tuple[str, ...], length: int, block: Mapping[str, Any], **changes: Any) -> Case:
    return Case(name, changes={"rope_parameters": block, "max_position_embeddings": length, **changes}, only=only)


METHODS = (
    *(_method(name) for name in ("none", "pi", "ntk", "ntk-by-parts", "llama3", "yarn", "dynamic-ntk")),
    _method("abf:rope_theta=100000000"),
    *(_method(f"yarn:{option}") for option in ("attention_factor=1", "attention_factor=1.3", "truncate=false")),
    _method("yarn:beta_fast=16,beta_slow=2"),
    _method("dynamic-ntk", TRAINED * FACTOR),
    _method("dynamic-yarn", TRAINED * FACTOR),
)

_YARN = {"rope_type": "yarn", "rope_theta": 10_000.0, ORIGINAL: TRAINED}
_LATENT = ("deepseek_v2", "deepseek_v3", "youtu")
_MSCALES = {"beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0}
_MINISTRAL = {**_YARN, "factor": 16.0, **_MSCALES, "llama_4_scaling_beta": 0.1}
_HUNYUAN = {"rope_type": "dynamic", "rope_theta": 10_000.0, "alpha": 1000.0, "factor": 1.0, **_MSCALES}

#: Blocks as they are released, in a small model's lengths where the programs allow that.
RELEASED = (
    _released("DeepSeek-V3", _LATENT, 40 * TRAINED, {**_YARN, "factor": 40.0, **_MSCALES}),
    _released("DeepSeek-V2", _LATENT, 40 * TRAINED, {**_YARN, "factor": 40.0, **_MSCALES, "mscale": 0.707, "mscale_all_dim": 0.707}),
    _released("Kimi K2", _LATENT, 32 * TRAINED, {**_YARN, "factor": 32.0, **_MSCALES, "beta_fast": 1.0}),
    _released("Ministral 3", ("ministral3",), 16 * TRAINED, _MINISTRAL),
    _released("Ministral 3, other betas", ("ministral3",), 16 * TRAINED, {**_MINISTRAL, "beta_fast": 16.0, "beta_slow": 2.0}),
    _released("Hunyuan", ("hunyuan_v1_dense", "hunyuan_v1_moe"), 262_144, _HUNYUAN, hidden_size=512, head_dim=128),
    _released(
        "Llama 4 Scout", ("llama4_text", "llama"), 16 * TRAINED,
        {"rope_type": "llama3", "rope_theta": 500_000.0, "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 1.0, ORIGINAL: TRAINED},
    ),
    _released(
        "gpt-oss", ("gpt_oss",), 32 * TRAINED,
        {**_YARN, "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False, "rope_theta": 150_000.0},
    ),
    _released(
        "Phi-3", ("phi3", "llama"), 4 * TRAINED,
        {
            "rope_type": "longrope", "rope_theta": 10_000.0, ORIGINAL: TRAINED, "factor": 4.0,
            "short_factor": [1.0 + i / 64 for i in range(32)], "long_factor": [1.0 + i / 8 for i in range(32)],
        },
    ),
    _released("Command R", ("cohere",), TRAINED, {"rope_type": "default", "rope_theta": 8e6}, model_max_length=4 * TRAINED),
    _released(
        "OLMo 3", ("olmo3",), 8 * TRAINED,
        {**_YARN, "factor": 8.0, "attention_factor": 0.1 * math.log(8) + 1, "beta_fast": 32.0, "beta_slow": 1.0},
    ),
)  # fmt: skip

CASES = (*METHODS, *RELEASED)


def cases_of(model_type: str) -> list[Case]:
    """Returns what a family is tried with."""
    return [case for case in CASES if case.only is None or model_type in case.only]
