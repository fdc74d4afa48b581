"""What can be set for ``finetune``, declared once: flags, YAML files and the Python API share it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from ropectl.hf.settings import ModelSettings

DEFAULT_TEXT = "builtin:stdlib-train"
DEFAULT_EVAL_TEXT = "builtin:stdlib"

#: The learning rate of every paper that tunes all weights (2306.15595, 2309.00071), and LoRA's usual one.
LEARNING_RATES = {"full": 2e-5, "lora": 2e-4}


class FinetuneSettings(ModelSettings):
    """``finetune``."""

    method: str | None = Field(None, description="method spec; the checkpoint's own scaling by default")
    compose: bool = Field(False, description="extend the scaling that is there by the new factor")
    freeze_at: int | None = Field(None, ge=2, description="length to freeze a length-dependent method at [tokens]")
    drop_code: bool = Field(False, description="leave out model code that comes with the checkpoint")
    strict: bool = Field(False, description="treat warnings about the source's config as errors")
    out: Path | None = Field(None, description="folder of the tuned checkpoint; the run's state is kept beside it")
    overwrite: bool = Field(False, description="replace what stands at out, and start anew")
    dry_run: bool = Field(False, description="estimate memory and time, write nothing")

    text: str = Field(DEFAULT_TEXT, description="training text, any source that --text can name")
    seq_len: int | None = Field(
        None, ge=8, description="tokens per sequence; the target length, or with pose the trained one [tokens]"
    )
    packing: Literal["concat", "isolated", "none"] = Field("concat", description="how documents fill sequences")
    positions: Literal["contiguous", "pose"] = Field("contiguous", description="positions of the tokens")
    pose_chunks: int = Field(2, ge=2, description="pieces of a sequence between which pose skips positions")
    short_fraction: float = Field(0.0, ge=0, lt=1, description="share of sequences of the trained length")
    passkey_fraction: float = Field(0.0, ge=0, lt=1, description="share of sequences that are passkey prompts")
    bos: str = Field("auto", description="beginning-of-sequence token: auto, always or never")

    strategy: str = Field("full", description="full or lora")
    lora_rank: int = Field(8, ge=1, description="rank of the LoRA matrices")
    lora_alpha: float = Field(16.0, gt=0, description="scale of the LoRA update, divided by the rank")
    lora_dropout: float = Field(0.0, ge=0, lt=1, description="dropout before the LoRA matrices")
    lora_targets: Literal["attention", "all"] = Field("attention", description="linear layers that get LoRA matrices")
    train_norms: bool = Field(False, description="with lora: train the normalisation weights too (2309.12307)")
    train_embeddings: bool = Field(False, description="with lora: train the embeddings too (2309.12307)")
    merge: bool = Field(True, description="with lora: write the merged model; else the adapter, its method beside it")

    steps: int = Field(400, ge=1, description="optimizer steps")
    batch_size: int = Field(8, ge=1, description="sequences per optimizer step, over all devices")
    micro_batch: int = Field(1, ge=1, description="sequences per forward pass on a device")
    learning_rate: float | None = Field(None, gt=0, description="peak learning rate; 2e-5, with lora 2e-4")
    schedule: str = Field("constant", description="constant, linear or cosine, after the warm-up")
    warmup_steps: int = Field(20, ge=0, description="steps over which the learning rate rises")
    weight_decay: float = Field(0.0, ge=0, description="of AdamW, on matrices only")
    beta2: float = Field(0.95, gt=0, lt=1, description="of AdamW")
    clip: float = Field(1.0, gt=0, description="largest norm of the gradient")
    seed: int = Field(0, ge=0, lt=2**32, description="decides data order, LoRA matrices and dropout")

    device: Literal["auto", "cpu"] = Field("auto", description="auto or cpu; which devices else, accelerate decides")
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field("auto", description="type of the arithmetic")
    dtype: str = Field("auto", description="type in which the weights are held while training")
    save_dtype: str = Field("auto", description="type of the written weights; the source's by default")
    attention: str | None = Field(None, description="attention implementation of transformers")
    activation_checkpointing: Literal["off", "on", "offload"] = Field(
        "off", description="recompute activations in the backward pass; offload keeps its inputs in host memory"
    )
    loss_chunk: int | None = Field(
        None, ge=0, description="tokens whose logits exist at a time; 0: of the whole sequence [tokens]"
    )
    cp_size: int = Field(1, ge=1, description="devices that share each sequence (context parallel)")

    save_every: int = Field(50, ge=1, description="steps between saved states")
    keep: int = Field(2, ge=1, description="saved states that are kept")
    resume: bool = Field(True, description="continue the run that out holds")
    force: bool = Field(False, description="continue although settings have changed")
    eval_every: int | None = Field(None, ge=1, description="steps between validations; the best state is kept")
    eval_text: str | None = Field(None, description="held-out text; builtin:stdlib for the built-in training text")
    eval_lengths: tuple[int, ...] = Field((), description="context lengths of validation [tokens]")
    eval_documents: int = Field(8, ge=1, description="most documents of a validation")
    eval_trials: int = Field(5, ge=0, description="passkey prompts per length and depth; 0 for none")
    early_stop: int | None = Field(None, ge=1, description="stop after so many validations without a better one")
    tracker: str | None = Field(None, description="tensorboard, wandb, trackio or another that accelerate knows")

    @field_validator("out")
    @classmethod
    def _in_home(cls, path: Path | None) -> Path | None:
        """A shell leaves ``~`` alone in ``--out=~/x``, and so does YAML."""
        return path.expanduser() if path is not None else None

    @property
    def peak_learning_rate(self) -> float:
        """The learning rate after the warm-up."""
        return self.learning_rate or LEARNING_RATES.get(self.strategy, LEARNING_RATES["full"])
