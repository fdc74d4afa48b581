"""What can be set for ``patch``."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator

from ropectl.hf.settings import ModelSettings


class PatchSettings(ModelSettings):
    """``patch``."""

    method: str | None = Field(None, description="method spec; without it the scaling of the checkpoint is kept")
    out: Path | None = Field(None, description="folder, or .gguf file with gguf_patch, to write")
    compose: bool = Field(False, description="extend the scaling that is there by the new factor")
    freeze_at: int | None = Field(None, ge=2, description="length to freeze a length-dependent method at [tokens]")
    drop_code: bool = Field(False, description="leave out model code that comes with the checkpoint")
    link: bool = Field(False, description="hard link weight files instead of copying them")
    merge: bool = Field(True, description="merge a LoRA adapter into its base")
    dtype: str = Field("auto", description="type of weights that are rewritten (GGUF input, merged adapters)")
    strict: bool = Field(False, description="treat warnings about the source's config as errors")
    verify_logits: bool = Field(False, description="compare logits with a fresh process that does not know ropectl")
    gguf_patch: Path | None = Field(None, description="an existing GGUF file whose copy is patched")
    overwrite: bool = Field(False, description="replace what stands at out")
    dry_run: bool = Field(False, description="show the plan, write nothing")

    @field_validator("out", "gguf_patch")
    @classmethod
    def _in_home(cls, path: Path | None) -> Path | None:
        """A shell leaves ``~`` alone in ``--out=~/x``, and so does YAML."""
        return path.expanduser() if path is not None else None
