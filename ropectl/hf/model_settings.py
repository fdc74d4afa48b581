"""The settings for model and scaling that the commands on checkpoints share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ropectl.hf.run_names import Dtype
from ropectl.option import Group, Option, Panel
from ropectl.setting_types import Settings, Texts, Tokens

DEFAULT_MODEL = "builtin:tiny"

INPUTS = Group("what is read, and therefore never replaced by a result")
CHECKPOINT = Group("which checkpoint it is, and how its config is read")
PERMISSION = Group("what a checkpoint may do that is dangerous")
LOADING = Group("how strictly the checkpoint is read, and how its weights are loaded and run")
SCALING = Group("which scaling is in force")
EXTENT = Group("how far to extend: ways to say the same thing")
FOLDER = Group("what only checkpoint folders have, and single files do not")

ModelName = Annotated[
    str,
    Field(description="folder, hub id, .gguf file, LoRA adapter folder or builtin:tiny"),
    Option(metavar="MODEL", offers="models"),
    CHECKPOINT,
    INPUTS,
]
Revision = Annotated[
    str | None,
    Field(description="branch, tag or commit on the hub"),
    Option(Panel.model, "NAME", default="the main one"),
    CHECKPOINT,
]
OriginalLength = Annotated[
    Tokens | None,
    Field(ge=2, description="trained context, if the config does not say it [tokens]"),
    Option(Panel.model, "N"),
    CHECKPOINT,
]
Layers = Annotated[
    str | None,
    Field(description="layer type to scale, where each has its own rotary table"),
    Option(Panel.scaling, "TYPE", default="those that see the whole context"),
    CHECKPOINT,
    FOLDER,
]
TrustRemoteCode = Annotated[
    bool, Field(description="run code that comes with the checkpoint"), Option(Panel.model), PERMISSION
]
AllowPickle = Annotated[
    bool,
    Field(description="accept .bin weights, which can run code while being read"),
    Option(Panel.model),
    PERMISSION,
]
MethodSpec = Annotated[
    str | None,
    Field(description="method spec NAME[:KEY=VALUE,...], see: ropectl methods"),
    Option(Panel.scaling, "SPEC", ("--method", "-m"), "the model's own scaling", "methods"),
    SCALING,
]
MethodSpecs = Annotated[
    Texts,
    Field(description="method spec NAME[:KEY=VALUE,...], repeatable, see: ropectl methods"),
    Option(Panel.scaling, "SPEC", ("--method", "-m"), offers="methods"),
    SCALING,
]
Factor = Annotated[
    float | None, Field(ge=1, description="extension factor s = L'/L"), Option(Panel.scaling, "S"), SCALING, EXTENT
]
Compose = Annotated[
    bool,
    Field(description="extend the scaling that is there by the new factor: they multiply"),
    Option(Panel.scaling),
    SCALING,
]
FreezeAt = Annotated[
    Tokens | None,
    Field(ge=2, description="length to freeze a length-dependent method at [tokens]"),
    Option(Panel.scaling, "N"),
    SCALING,
]
DropCode = Annotated[
    bool, Field(description="leave out model code that comes with the checkpoint"), Option(Panel.model), FOLDER
]
Strict = Annotated[
    bool,
    Field(description="treat warnings about the checkpoint's config as errors"),
    Option(Panel.model),
    LOADING,
]
WeightType = Annotated[
    Dtype,
    Field(description="type of the weights: auto, float32, bfloat16 or float16"),
    Option(Panel.model, "TYPE", default="auto: float32 on the CPU, else the checkpoint's own"),
    LOADING,
]
Device = Annotated[
    str,
    Field(description="device: cpu, cuda, cuda:1, mps, ... or auto"),
    Option(Panel.model, "NAME", default="auto: an accelerator if there is one"),
    LOADING,
]
Attention = Annotated[
    str | None,
    Field(description="attention implementation of transformers: sdpa, eager, flash_attention_2, ..."),
    Option(Panel.model, "NAME", default="as transformers chooses"),
    LOADING,
]


class ConfigSettings(Settings):
    """The settings of commands that read a checkpoint's config and nothing else."""

    model: ModelName = DEFAULT_MODEL
    revision: Revision = None
    original_length: OriginalLength = None
    factor: Factor = None
    target_length: Annotated[
        Tokens | None,
        Field(ge=2, description="wanted context L', instead of a factor [tokens]"),
        Option(Panel.scaling, "N"),
        SCALING,
        EXTENT,
    ] = None
    layers: Layers = None
    replace: Annotated[
        bool,
        Field(description="set aside the scaling that the checkpoint already has"),
        Option(Panel.scaling),
        SCALING,
    ] = False
    trust_remote_code: TrustRemoteCode = False
    strict: Strict = False


class ModelSettings(ConfigSettings):
    """The settings of commands that read a checkpoint's weights too."""

    allow_pickle: AllowPickle = False
