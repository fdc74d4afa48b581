"""Settings of ``inspect`` and of ``methods --choose``, which read a model's config."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ropectl.hf.model_settings import (
    DEFAULT_MODEL,
    ConfigSettings,
    Layers,
    MethodSpecs,
    ModelName,
    OriginalLength,
    Revision,
    Strict,
    TrustRemoteCode,
)
from ropectl.option import Option, Panel
from ropectl.setting_types import Settings, Tokens


class InspectSettings(ConfigSettings):
    """The settings of ``inspect``."""

    methods: Annotated[
        MethodSpecs, Option(Panel.scaling, "SPEC", ("--method", "-m"), "the model's own scaling", "methods")
    ] = ()
    geometry: Annotated[
        str | None,
        Field(
            description="numbers instead of a model: rotary_dim, rope_theta, original_max_position_embeddings, and num_turning "
            "if not all pairs turn"
        ),
        Option(Panel.model, "KEY=VALUE,..."),
    ] = None
    seq_len: Annotated[
        Tokens | None,
        Field(description="sequence length, for methods that depend on it [tokens]"),
        Option(Panel.shown, "N", default="the trained one"),
    ] = None


class ChoiceSettings(Settings):
    """The settings of ``methods --choose``."""

    model: Annotated[
        ModelName,
        Field(
            description="a method, to be explained in full; with --choose the model: folder, hub id, .gguf file or builtin:tiny"
        ),
        Option(metavar="NAME", offers="methods_or_models"),
    ] = DEFAULT_MODEL
    target_length: Annotated[
        Tokens | None, Field(description="wanted context, such as 32k [tokens]"), Option(Panel.choosing, "N")
    ] = None
    tuning: Annotated[
        Literal["none", "light", "full"],
        Field(description="planned training: none, light (some hundred steps) or full (as long as it takes)"),
        Option(Panel.choosing, "HOW"),
    ] = "none"
    runtime: Annotated[
        str | None,
        Field(
            description="only methods that the newest known version of transformers, vllm, sglang or llama.cpp computes as meant"
        ),
        Option(Panel.choosing, "NAME", offers="runtimes"),
    ] = None
    geometry: Annotated[
        str | None,
        Field(description="numbers instead of a model, as in inspect"),
        Option(Panel.choosing, "KEY=VALUE,..."),
    ] = None
    layers: Layers = None
    revision: Revision = None
    original_length: OriginalLength = None
    trust_remote_code: TrustRemoteCode = False
    strict: Strict = False

    def subject(self) -> InspectSettings:
        """Returns the model, or the numbers, that the choice is about."""
        shared = self.model_fields_set & InspectSettings.model_fields.keys() - {"target_length"}
        return InspectSettings(**{name: getattr(self, name) for name in shared})
