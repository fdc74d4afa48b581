"""Settings of ``patch``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ropectl.hf.model_settings import FOLDER, Compose, DropCode, FreezeAt, MethodSpec, ModelSettings
from ropectl.hf.run_names import Dtype
from ropectl.option import Option, Panel
from ropectl.setting_types import HomePath


class PatchSettings(ModelSettings):
    """The settings of ``patch``."""

    method: MethodSpec = None
    out: Annotated[
        HomePath | None,
        Field(description="folder, or .gguf file with --gguf-patch, to write"),
        Option(Panel.output, "PATH", ("--out", "-o")),
    ] = None
    compose: Compose = False
    freeze_at: FreezeAt = None
    drop_code: DropCode = False
    link: Annotated[
        bool, Field(description="hard link weight files instead of copying them"), Option(Panel.output), FOLDER
    ] = False
    merge: Annotated[
        bool | None,
        Field(description="merge a LoRA adapter into its base, which is the default, or keep it"),
        Option(Panel.output, names=("--merge/--no-merge",)),
        FOLDER,
    ] = None
    dtype: Annotated[
        Dtype,
        Field(
            description="type of weights that are rewritten (GGUF input, merged adapters): auto, float32, bfloat16 or float16"
        ),
        Option(Panel.output, "TYPE", default="auto: the source's"),
        FOLDER,
    ] = "auto"
    verify_logits: Annotated[
        bool,
        Field(description="compare logits with a fresh process that does not know ropectl"),
        Option(Panel.output),
        FOLDER,
    ] = False
    gguf_patch: Annotated[
        HomePath | None,
        Field(description="patch a copy of this GGUF file"),
        Option(Panel.output, "FILE"),
    ] = None
    overwrite: Annotated[bool, Field(description="replace what stands at --out"), Option(Panel.output)] = False
    dry_run: Annotated[bool, Field(description="show the plan, write nothing"), Option(Panel.output)] = False
