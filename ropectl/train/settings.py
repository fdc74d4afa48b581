"""Settings of ``finetune``, shared by flags, YAML files and the Python API."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ropectl.evaluate.shared_config import MAX_BATCH, MAX_TRIALS, Bos
from ropectl.hf.model_settings import Attention, Compose, DropCode, FreezeAt, MethodSpec, ModelSettings
from ropectl.hf.run_names import Dtype, check_attention
from ropectl.option import Group, Option, Panel
from ropectl.setting_types import HomePath, Lengths, Tokens

DEFAULT_TEXT = "builtin:stdlib-train"
DEFAULT_EVAL_TEXT = "builtin:stdlib"

#: The learning rate of every paper that tunes all weights (2306.15595, 2309.00071), and LoRA's usual one.
LEARNING_RATES = {"full": 2e-5, "lora": 2e-4}

LORA = Group("what LoRA adapters are made of")
RUN = Group("where a run is kept, and whether it is continued")


class FinetuneSettings(ModelSettings):
    """The settings of ``finetune``."""

    method: MethodSpec = None
    compose: Compose = False
    freeze_at: FreezeAt = None
    drop_code: DropCode = False
    out: Annotated[
        HomePath | None,
        Field(description="folder of the tuned checkpoint; the run's state is kept in OUT.run"),
        Option(Panel.output, "FOLDER", ("--out", "-o")),
        RUN,
    ] = None
    overwrite: Annotated[
        bool, Field(description="replace what stands at --out, and begin anew"), Option(Panel.output), RUN
    ] = False
    dry_run: Annotated[
        bool, Field(description="estimate memory and time, write nothing"), Option(Panel.output), RUN
    ] = False

    text: Annotated[
        str,
        Field(description="training text, any source that --text can name elsewhere"),
        Option(Panel.data, "SOURCE", offers="sources"),
    ] = DEFAULT_TEXT
    seq_len: Annotated[
        Tokens | None,
        Field(ge=8, description="tokens per sequence [tokens]"),
        Option(Panel.data, "N", default="the target length; with pose the trained one"),
    ] = None
    packing: Annotated[
        Literal["concat", "isolated", "none"],
        Field(
            description="how documents fill sequences: concat (long documents, the rest joined), isolated (documents do not see each other) or none"
        ),
        Option(Panel.data, "HOW"),
    ] = "concat"
    positions: Annotated[
        Literal["contiguous", "pose"],
        Field(
            description="positions of the tokens: contiguous, or pose (short sequences that skip positions up to the target)"
        ),
        Option(Panel.data, "HOW"),
    ] = "contiguous"
    pose_chunks: Annotated[
        int, Field(ge=2, description="pieces of a sequence between which pose skips positions"), Option(Panel.data, "N")
    ] = 2
    short_fraction: Annotated[
        float, Field(ge=0, lt=1, description="share of sequences of the trained length"), Option(Panel.data, "P")
    ] = 0.0
    passkey_fraction: Annotated[
        float, Field(ge=0, lt=1, description="share of sequences that are passkey prompts"), Option(Panel.data, "P")
    ] = 0.0
    bos: Annotated[Bos, Option(Panel.data, "WHEN")] = "auto"

    strategy: Annotated[
        str,
        Field(description="which weights are trained: full or lora"),
        Option(Panel.weights, "NAME", offers="ropectl.train.strategies:STRATEGIES"),
    ] = "full"
    lora_rank: Annotated[
        int, Field(ge=1, description="rank of the LoRA matrices"), Option(Panel.weights, "N"), LORA
    ] = 8
    lora_alpha: Annotated[
        float,
        Field(gt=0, description="scale of the LoRA update, divided by the rank"),
        Option(Panel.weights, "A"),
        LORA,
    ] = 16.0
    lora_dropout: Annotated[
        float, Field(ge=0, lt=1, description="dropout before the LoRA matrices"), Option(Panel.weights, "P"), LORA
    ] = 0.0
    lora_targets: Annotated[
        Literal["attention", "all"],
        Field(description="linear layers that get LoRA matrices: attention or all"),
        Option(Panel.weights, "WHICH"),
        LORA,
    ] = "attention"
    train_norms: Annotated[
        bool,
        Field(description="with lora: train the normalisation weights too (LongLoRA, 2309.12307)"),
        Option(Panel.weights),
        LORA,
    ] = False
    train_embeddings: Annotated[
        bool,
        Field(description="with lora: train the embeddings too (LongLoRA, 2309.12307)"),
        Option(Panel.weights),
        LORA,
    ] = False
    merge: Annotated[
        bool | None,
        Field(
            description="with lora: write the merged model, which is the default, or the adapter with its method beside it"
        ),
        Option(Panel.weights, names=("--merge/--no-merge",)),
        LORA,
    ] = None

    steps: Annotated[int, Field(ge=1, description="optimizer steps"), Option(Panel.training, "N")] = 400
    batch_size: Annotated[
        int,
        Field(ge=1, le=MAX_BATCH, description="sequences per optimizer step, over all devices"),
        Option(Panel.training, "N"),
    ] = 8
    micro_batch: Annotated[
        int, Field(ge=1, le=MAX_BATCH, description="sequences per forward pass on a device"), Option(Panel.engine, "N")
    ] = 1
    learning_rate: Annotated[
        float | None,
        Field(gt=0, description="peak learning rate"),
        Option(Panel.training, "R", ("--learning-rate", "--lr"), "2e-5, with lora 2e-4"),
    ] = None
    schedule: Annotated[
        str,
        Field(description="learning rate after the warm-up: constant, linear or cosine"),
        Option(Panel.training, "NAME", offers="ropectl.train.schedule:SCHEDULES"),
    ] = "constant"
    warmup_steps: Annotated[
        int, Field(ge=0, description="steps over which the learning rate rises"), Option(Panel.training, "N")
    ] = 20
    weight_decay: Annotated[
        float, Field(ge=0, description="weight decay of AdamW, on matrices only"), Option(Panel.training, "W")
    ] = 0.0
    beta2: Annotated[float, Field(gt=0, lt=1, description="beta2 of AdamW"), Option(Panel.training, "B")] = 0.95
    clip: Annotated[float, Field(gt=0, description="largest norm of the gradient"), Option(Panel.training, "N")] = 1.0
    seed: Annotated[
        int,
        Field(ge=0, lt=2**32, description="decides data order, LoRA matrices and dropout"),
        Option(Panel.training, "N"),
    ] = 0

    device: Annotated[
        Literal["auto", "cpu"],
        Field(description="device: auto or cpu; which accelerator, the launcher decides"),
        Option(Panel.engine, "NAME"),
    ] = "auto"
    precision: Annotated[
        Literal["auto", "fp32", "bf16", "fp16"],
        Field(description="type of the arithmetic: auto, fp32, bf16 or fp16"),
        Option(Panel.engine, "TYPE"),
    ] = "auto"
    dtype: Annotated[
        Dtype,
        Field(description="type in which the weights are held while training: auto, float32 or bfloat16 (not float16)"),
        Option(Panel.engine, "TYPE"),
    ] = "auto"
    save_dtype: Annotated[
        Dtype,
        Field(description="type of the written weights: auto, float32, bfloat16 or float16"),
        Option(Panel.output, "TYPE", default="auto: the source's"),
    ] = "auto"
    attention: Attention = None
    activation_checkpointing: Annotated[
        Literal["off", "on", "offload"],
        Field(
            description="recompute activations in the backward pass: off, on, or offload (which keeps their inputs in host memory)"
        ),
        Option(Panel.engine, "HOW"),
    ] = "off"
    loss_chunk: Annotated[
        int | None,
        Field(ge=0, description="tokens whose logits exist at a time; 0 for the whole sequence [tokens]"),
        Option(Panel.engine, "N"),
    ] = None
    cp_size: Annotated[
        int,
        Field(ge=1, description="devices that share each sequence (context parallelism)"),
        Option(Panel.engine, "N"),
    ] = 1

    save_every: Annotated[int, Field(ge=1, description="steps between saved states"), Option(Panel.output, "N")] = 50
    keep: Annotated[int, Field(ge=1, description="saved states that are kept"), Option(Panel.output, "N")] = 2
    resume: Annotated[
        bool,
        Field(description="continue the run in OUT.run, which is the default, or begin anew and remove its states"),
        Option(Panel.output),
        RUN,
    ] = True
    force: Annotated[bool, Field(description="continue although settings have changed"), Option(Panel.output), RUN] = (
        False
    )
    eval_every: Annotated[
        int | None,
        Field(ge=1, description="steps between validations; the best state is written"),
        Option(Panel.validation, "N", default="none"),
    ] = None
    eval_text: Annotated[
        str | None,
        Field(description="held-out text"),
        Option(Panel.validation, "SOURCE", default="builtin:stdlib for the built-in training text", offers="sources"),
    ] = None
    eval_lengths: Annotated[
        Lengths,
        Field(description="context lengths of validation, written as --length elsewhere; repeatable [tokens]"),
        Option(Panel.validation, "N", ("--eval-length",), "from the trained length to the target"),
    ] = ()
    eval_documents: Annotated[
        int, Field(ge=1, description="most documents of a validation"), Option(Panel.validation, "N")
    ] = 8
    eval_trials: Annotated[
        int,
        Field(ge=0, le=MAX_TRIALS, description="passkey prompts per length and depth; 0 for none"),
        Option(Panel.validation, "N"),
    ] = 5
    early_stop: Annotated[
        int | None,
        Field(ge=1, description="stop after so many validations without a better one"),
        Option(Panel.validation, "N", default="never"),
    ] = None
    tracker: Annotated[
        str | None,
        Field(description="tracker: tensorboard, wandb, trackio or another that accelerate knows"),
        Option(Panel.output, "NAME", default="none"),
    ] = None

    def check_typed(self) -> None:
        """Checks the attention implementation."""
        check_attention(self.attention, self.trust_remote_code)

    @property
    def peak_learning_rate(self) -> float:
        """The learning rate after the warm-up."""
        return self.learning_rate or LEARNING_RATES.get(self.strategy, LEARNING_RATES["full"])
