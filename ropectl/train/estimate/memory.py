"""Estimates the memory of a training step on a device, part by part: arithmetic on sizes, without torch.

This is what a layer keeps for the backward pass, in bytes per token, for a Llama layer of transformers with SDPA (no
score matrix). r are the bytes of a number of the residual stream, c those of the output of a linear layer (2 under
autocast, else r); h, i, q, k are the widths of the hidden state, the MLP, all queries, all keys:

    2 norms     2 * (4 h + 4)          their input in float32 and the inverse deviation
                2 * r h                the normalised input, where norm weights are trained
    attention   c (2 q + 2 k) + 4 H    rotated queries and keys, values, the result, the log of the softmax's sum
    MLP         3 c i                  gate, its activation, up
    inputs of linear layers            kept where their weights are trained, see ``_inputs``

For a fully trained model in one type of numbers r that is ``8 h + 8 + 4 r h + r (2 q + 2 k) + 4 H + 4 r i``. A model
whose attention is ``eager`` keeps the scores too: H T^2 (4 + c) bytes, c only where c < 4. The backward pass itself
holds the gradients of the widest tensors of one layer, about 2 c i + r h.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ropectl.hf.model_shape import ModelShape

#: Copies of one chunk's logits that the loss holds at once: log-probabilities, and two float32 gradients of them.
LOGIT_COPIES = 3
FLOAT32, HALF = 4, 2


@dataclass(frozen=True)
class Weights:
    """Counts and bytes of a model's weights, prepared by a strategy.

    Attributes:
        total: Parameters, tied ones once.
        trained: Those that are trained.
        parts: Trained parameters by kind: matrices, norms, embeddings, LoRA matrices.
        layers: Parameters of all decoder layers that a token uses.
        layers_trained: Those of them that are trained.
        num_bytes: Bytes of all parameters.
        trained_bytes: Bytes of the trained ones.
        cast: Parameters that autocast copies into half precision.
        layer_bytes: Bytes of the largest decoder layer.
        root_bytes: Bytes of everything outside decoder layers.
        residual_bytes: Bytes of a number of the residual stream.
    """

    total: int
    trained: int
    parts: dict[str, int]
    layers: int
    layers_trained: int
    num_bytes: int
    trained_bytes: int
    cast: int
    layer_bytes: int
    root_bytes: int
    residual_bytes: int = FLOAT32


@dataclass(frozen=True)
class TrainingSetup:
    """Everything that memory depends on, except the model.

    Attributes:
        strategy: Name of the training strategy.
        seq_len: Tokens per sequence.
        micro_batch: Sequences per forward pass.
        checkpointing: Activation checkpointing: off, on or offload.
        loss_chunk: Tokens of a sequence whose logits exist at a time; 0 for all.
        autocast: Whether arithmetic is in half precision by autocast.
        eager: Whether attention keeps its scores.
        ranks: Devices.
        sharded: Whether weights are divided among them (FSDP2).
        cp_size: Devices that share each sequence.
        trains_norms: Whether norm weights are trained.
        lora_rank: Rank of LoRA matrices; 0 where there are none.
        lora_all: Whether the MLP has LoRA matrices too.
        lora_dropout: Whether there is dropout before them.
    """

    strategy: str
    seq_len: int
    micro_batch: int = 1
    checkpointing: str = "off"
    loss_chunk: int = 0
    autocast: bool = False
    eager: bool = False
    ranks: int = 1
    sharded: bool = False
    cp_size: int = 1
    trains_norms: bool = True
    lora_rank: int = 0
    lora_all: bool = False
    lora_dropout: bool = False

    @property
    def tokens(self) -> int:
        """Tokens of a forward pass on a device."""
        return self.micro_batch * -(-self.seq_len // self.cp_size)


def memory_parts(shape: ModelShape, weights: Weights, setup: TrainingSetup) -> dict[str, int]:
    """Returns the largest size of each part on every device [bytes].

    The sum is what a step needs if all parts are at their largest at once. Only tensors are counted, not what the process
    and its allocator take. With ``offload``, ``host_activations`` is memory of the host.
    """
    residual, computed = _types(weights, setup)
    share = setup.ranks if setup.sharded else 1
    inputs = shape.num_layers * setup.tokens * residual * shape.hidden
    layer = layer_activations(shape, weights, setup)
    kept = shape.num_layers * layer if setup.checkpointing == "off" else layer
    kept += inputs if setup.checkpointing == "on" else 0
    if setup.checkpointing == "off" and "embeddings" not in weights.parts and setup.lora_rank:
        # No gradient flows into the first norm, nor into the dropout of what it gives.
        kept -= setup.tokens * FLOAT32 * (shape.hidden + 1 + (3 * shape.hidden if setup.lora_dropout else 0))
    rotary = 2 * shape.head_dim * residual * setup.tokens
    last = setup.tokens * (FLOAT32 * (shape.hidden + 1) + (1 + setup.trains_norms) * residual * shape.hidden + 8)
    parts = {
        "weights": -(-weights.num_bytes // share),
        "gradients": -(-weights.trained_bytes // share),
        "optimizer": -(-2 * weights.trained_bytes // share),  # AdamW: two numbers of the weight's own type
        "activations": kept + rotary + last,
        "backward pass": setup.tokens * (2 * computed * shape.intermediate + residual * shape.hidden),
        "logits": _logit_bytes(shape, setup),
    }
    if setup.sharded:  # one layer computes, the next one is gathered; embeddings and head stay
        parts["gathered weights"] = (2 * weights.layer_bytes + weights.root_bytes) // (2 if setup.autocast else 1)
    elif setup.autocast:
        parts["half-precision copies"] = HALF * weights.cast
    if setup.ranks > 1 and not setup.sharded:
        parts["exchange buffers"] = weights.trained_bytes
    if setup.checkpointing == "offload":
        parts["host_activations"] = inputs
    return parts


def device_total(parts: dict[str, int]) -> int:
    """Returns the bytes on a device."""
    return sum(size for name, size in parts.items() if not name.startswith("host"))


def layer_activations(shape: ModelShape, weights: Weights, setup: TrainingSetup) -> int:
    """Returns the bytes that one layer keeps for the backward pass, by the formula of this module."""
    residual, computed = _types(weights, setup)
    h, i = shape.hidden, shape.intermediate
    norms = 2 * (FLOAT32 * (h + 1) + (residual * h if setup.trains_norms else 0))
    attention = computed * 2 * (shape.query_width + shape.key_width) + FLOAT32 * shape.num_heads
    per_token = norms + attention + 3 * computed * i + _inputs(shape, residual, computed, setup)
    scores = FLOAT32 + (computed if computed < FLOAT32 else 0) if setup.eager else 0
    return setup.tokens * (per_token + scores * shape.num_heads * setup.seq_len)


def _inputs(shape: ModelShape, residual: int, computed: int, setup: TrainingSetup) -> int:
    """Returns the bytes per token of what trained linear layers read.

    Linear layers that read the same tensor share it, unless each makes its own copy in another type or its own dropout
    of it: autocast copies a float32 input, LoRA matrices (float32) a half-precision one.
    """
    # width, linear layers that read it, bytes of a number, whether it is kept by attention anyway
    reads = [
        (shape.hidden, 3, residual, False),
        (shape.query_width, 1, computed, True),
        (shape.hidden, 2, residual, False),
        (shape.intermediate, 1, computed, False),
    ]
    if not setup.lora_rank:
        return sum(
            width * (readers * HALF if setup.autocast and size > HALF else 0 if kept else size)
            for width, readers, size, kept in reads
        )
    copy = HALF if setup.autocast else FLOAT32
    total = 0
    for width, readers, size, kept in reads if setup.lora_all else reads[:2]:
        is_own = setup.autocast or size < FLOAT32 or setup.lora_dropout
        total += width * (readers * copy if is_own else 0 if kept else size)
        total += readers * (setup.lora_rank * copy + (FLOAT32 * width if setup.lora_dropout else 0))
    return total


def _types(weights: Weights, setup: TrainingSetup) -> tuple[int, int]:
    """Returns the bytes of a number of the residual stream, and of the output of a linear layer."""
    residual = HALF if setup.sharded and setup.autocast else weights.residual_bytes
    return residual, HALF if setup.autocast else residual


def _logit_bytes(shape: ModelShape, setup: TrainingSetup) -> int:
    """Returns the bytes of the logits that exist at once, and of their gradients."""
    chunk = min(setup.loss_chunk or setup.tokens, setup.tokens // setup.micro_batch)
    return LOGIT_COPIES * FLOAT32 * shape.vocabulary * setup.micro_batch * max(1, chunk)


def levers(
    setup: TrainingSetup, *, chunk: int, trained_length: int, can_pose: bool, lora: TrainingSetup | None
) -> dict[str, TrainingSetup]:
    """Returns the ways to need less memory, as flags to type and the setup with them: each by itself, then all together.

    Args:
        setup: What is asked for.
        chunk: The loss chunk that ropectl chooses [tokens]; 0 where the whole logits are needed.
        trained_length: The length that the model was trained at [tokens].
        can_pose: Whether positions can be skipped.
        lora: The setup with LoRA; None where it is in use or not possible.
    """
    changes: list[tuple[str, dict[str, object]]] = []
    if setup.checkpointing == "off":
        changes.append(("--activation-checkpointing on", {"checkpointing": "on"}))
    if chunk and chunk < (setup.loss_chunk or setup.seq_len):
        changes.append((f"--loss-chunk {chunk}", {"loss_chunk": chunk}))
    if setup.micro_batch > 1:
        changes.append(("--micro-batch 1", {"micro_batch": 1}))
    if can_pose and setup.seq_len > trained_length:
        changes.append((f"--positions pose --seq-len {trained_length}", {"seq_len": trained_length}))
    if lora is not None:
        names = ("strategy", "trains_norms", "lora_rank", "lora_all", "lora_dropout")
        changes.append(("--strategy lora", {name: getattr(lora, name) for name in names}))
    if len(changes) > 1:
        together = {name: value for _, values in changes for name, value in values.items()}
        changes.append((" ".join(flags for flags, _ in changes), together))
    return {flags: replace(setup, **values) for flags, values in changes}  # type: ignore[arg-type]
