"""Which model, and which scaling: what every command that takes a checkpoint can be told."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

DEFAULT_MODEL = "builtin:tiny"


class ModelSettings(BaseModel):
    """The settings that ``patch``, the measurements and ``inspect`` share."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=())

    model: str = Field(DEFAULT_MODEL, description="folder, hub id, .gguf file, adapter folder or builtin:tiny")
    revision: str | None = Field(None, description="branch, tag or commit on the hub")
    original_length: int | None = Field(
        None, ge=2, description="trained context, if the config does not say it [tokens]"
    )
    factor: float | None = Field(None, ge=1, description="extension factor s = L'/L")
    target_length: int | None = Field(None, ge=2, description="wanted context L', instead of a factor [tokens]")
    layers: str | None = Field(None, description="layer type to scale, where each has its own rotary table")
    replace: bool = Field(False, description="set aside the scaling that the checkpoint already has")
    trust_remote_code: bool = Field(False, description="run modelling code that comes with the checkpoint")
    allow_pickle: bool = Field(False, description="accept .bin weights, which can run code while being read")
