"""Holds the differences between model families as data: a new family is at most one line here.

A family that is not named is like Llama: half-split pairs, any type of scaling, one table for all layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Other names of rope types. ``mrope`` is a layout of positions, not a scaling.
ROPE_TYPE_ALIASES = {"mrope": "default", "su": "longrope"}

#: Keys of the block that lay out positions of several axes; transformers 4 needs them in its block too.
LAYOUT_KEYS = ("mrope_section", "mrope_interleaved")

#: Keys of ``rope_parameters`` that say how a family applies rotations, not how fast they are. A patch
#: keeps them.
KEPT_ROPE_KEYS = ("partial_rotary_factor", *LAYOUT_KEYS, "llama_4_scaling_beta")

#: Keys that transformers reads next to the blocks of layer types, never in them.
UNREAD_IN_LAYER_BLOCKS = ("truncate",)

#: Modules under these names rotate something other than text.
NON_TEXT_PARTS = ("vision", "visual", "audio", "image")

#: Model types whose config.json, where it names base, length, heads and these further keys, means what it
#: says: the classes add no rotary defaults of their own. All others are read through their transformers
#: class, which takes seconds to import.
SELF_CONTAINED_CONFIGS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("llama", "mistral", "mixtral", "qwen2", "olmo", "olmo2", "granite"), ()),
    **dict.fromkeys(("qwen3", "qwen3_moe"), ("head_dim", "use_sliding_window")),
    "gemma": ("head_dim",),
}

#: Keys beside ``max_position_embeddings`` that servers take for the context: those of vLLM 0.32, without Whisper's.
LENGTH_KEYS = (
    *("model_max_length", "max_sequence_length", "max_seq_length", "max_seq_len", "seq_length", "seq_len"),
    *("n_positions", "n_ctx"),
)

#: A block that counts positions in chunks of the trained length, as Qwen2.5-1M has it.
CHUNKED_POSITIONS = "dual_chunk_attention_config"

#: Names that older families have for common keys.
KEY_ALIASES = {
    "max_position_embeddings": ("max_seq_len", "model_max_length"),
    "head_dim": ("attention_head_dim",),
    "hidden_size": ("d_model",),
    "num_attention_heads": ("n_heads",),
}

#: The layer type that is scaled by default: it sees the whole context.
DEFAULT_LAYER_TYPE = "full_attention"

#: Parts of the names of layer types that see a window only.
WINDOWED_LAYERS = ("sliding", "chunked", "window")

#: Parts of the names of layer types without attention over tokens.
LAYERS_WITHOUT_ROPE = ("linear", "conv", "moe", "mlp", "mamba", "recurrent")

#: Where a config says the width of its windows [tokens].
WINDOW_KEYS = ("sliding_window", "attention_chunk_size", "attention_window_size")

#: A config with this key has multi-head latent attention: its softmax scale is made from the scaling block
#: when the layer is built, and reads ``mscale_all_dim`` there.
LATENT_ATTENTION_KEY = "qk_rope_head_dim"

HALF_SPLIT, INTERLEAVED = "half-split", "interleaved"


@dataclass(frozen=True)
class Family:
    """The differences between a family and Llama.

    Attributes:
        pairing: The channels that turn together: i and i + d/2, or the neighbours 2i and 2i + 1.
        pairing_flag: Config key that, when true, makes the pairing interleaved.
        rope_types: The only types of scaling that its classes accept and compute; empty for all. Other
            scaling takes the universal form.
        no_universal: The reason why transformers cannot load the universal form here; empty where it can.
        attention_keys: Keys of the block whose values, for short and long input, replace the
            attention factor in every type but ``default``.
        static_longrope: Whether its ``longrope`` uses ``short_factor`` at every length.
        keeps_original_length: Whether its attention reads the trained length from the block, whatever the type.
        block_keys: Further keys of the block that its classes read, or that its released files carry without effect.
        alpha_is_ntk: Whether ``dynamic`` with ``alpha`` is a fixed NTK-aware base.
        rope_only_windowed: Whether only layers with a window rotate; those that see everything have no positions.
        default_window: The class's window where config.json does not name it [tokens].
        window_needs_flag: Whether a window counts only where ``use_sliding_window`` says so.
        null_head_dim: Whether the class leaves ``head_dim`` null, which some scaling types cannot read.
        rope_needs: Config keys and the values without which a model of this family has no rotary positions.
        theta_key: The name of ``rope_theta`` in transformers 4.
        share_key: The name of ``partial_rotary_factor`` in transformers 4.
        layer_theta_keys: For one block per layer type: the key of each base in transformers 4.
        length_is_whole: Whether servers take its declared length as it is, whatever the factor of its block.
        layer_scaling: The layer type that ``rope_scaling`` of transformers 4 is about; empty if it has none.
    """

    pairing: str = HALF_SPLIT
    pairing_flag: str = ""
    rope_types: tuple[str, ...] = ()
    no_universal: str = ""
    attention_keys: tuple[str, ...] = ()
    static_longrope: bool = False
    keeps_original_length: bool = False
    block_keys: tuple[str, ...] = ()
    alpha_is_ntk: bool = False
    rope_only_windowed: bool = False
    default_window: int | None = None
    window_needs_flag: bool = False
    null_head_dim: bool = False
    rope_needs: Mapping[str, Any] = field(default_factory=dict)
    theta_key: str = "rope_theta"
    share_key: str = "partial_rotary_factor"
    layer_theta_keys: Mapping[str, str] = field(default_factory=dict)
    length_is_whole: bool = False
    layer_scaling: str = ""


_LLAMA = Family()
_INTERLEAVED = Family(pairing=INTERLEAVED)
_FLAGGED = Family(pairing_flag="rope_interleave")
_HUNYUAN = Family(
    alpha_is_ntk=True, null_head_dim=True, block_keys=("alpha", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")
)
_WINDOWED_ROPE = Family(rope_only_windowed=True)
_GEMMA4 = Family(
    no_universal="the heads of its full layers are wider than the others, which transformers' check of longrope does not allow for",
)
_GEMMA3 = Family(
    layer_theta_keys={"full_attention": "rope_theta", "sliding_attention": "rope_local_base_freq"},
    layer_scaling="full_attention",
    length_is_whole=True,  # vLLM by the name, sglang because each layer type has a block
)

#: Model type -> its differences from Llama.
FAMILIES: dict[str, Family] = {
    **dict.fromkeys(("bailing_hybrid", "axk2", "cohere", "deepseek_v2", "deepseek_v32", "ernie4_5"), _INTERLEAVED),
    **dict.fromkeys(("ernie4_5_moe", "glm", "glm4", "glm_moe_dsa", "helium", "longcat_flash"), _INTERLEAVED),
    **dict.fromkeys(("axk1", "deepseek_v3", "glm4_moe_lite", "sarvam_mla", "youtu"), _FLAGGED),
    **dict.fromkeys(("afmoe", "exaone4", "exaone_moe", "flint", "kolibri1", "lara_mini"), _WINDOWED_ROPE),
    **dict.fromkeys(("cohere2", "cohere2_moe", "llama4_text"), Family(pairing=INTERLEAVED, rope_only_windowed=True)),
    **dict.fromkeys(("gemma3_text", "gemma3n_text"), _GEMMA3),
    **dict.fromkeys(("gemma4_text", "gemma4_unified_text"), _GEMMA4),
    **dict.fromkeys(("gpt_neox", "gpt_neox_japanese"), Family(theta_key="rotary_emb_base", share_key="rotary_pct")),
    **dict.fromkeys(("hunyuan_v1_dense", "hunyuan_v1_moe"), _HUNYUAN),
    **dict.fromkeys(("minimax", "ministral", "mixtral"), Family(null_head_dim=True)),
    **dict.fromkeys(("phi3", "phi4_multimodal"), Family(rope_types=("default", "longrope"))),
    "dots3_note_text": Family(
        pairing=INTERLEAVED,
        no_universal="its layers differ in their number of heads, which transformers' check of longrope does not allow for",
    ),
    "falcon": Family(rope_needs={"alibi": False}),
    "granitemoehybrid": Family(rope_needs={"position_embedding_type": "rope"}),
    "ministral3": Family(keeps_original_length=True, block_keys=("max_position_embeddings",)),
    "mistral": Family(default_window=4096),
    "mistral4": Family(block_keys=("max_position_embeddings",)),
    "olmo3": Family(
        layer_theta_keys={"full_attention": "rope_theta", "sliding_attention": "rope_theta"},
        layer_scaling="full_attention",
    ),
    "phimoe": Family(rope_types=("default",), attention_keys=("short_mscale", "long_mscale"), static_longrope=True),
    "qwen2": Family(window_needs_flag=True),
    "zamba2": Family(rope_needs={"use_mem_rope": True}),
}


def family_of(section: Mapping[str, Any]) -> Family:
    """Returns how the family of a config's text part departs from Llama."""
    return FAMILIES.get(str(section.get("model_type")), _LLAMA)


def pairing_of(section: Mapping[str, Any]) -> str:
    """Returns which channels of a head turn together, ``half-split`` or ``interleaved``."""
    family = family_of(section)
    return INTERLEAVED if family.pairing_flag and section.get(family.pairing_flag) else family.pairing


def named(section: Mapping[str, Any], key: str) -> Any:
    """Returns the value of a key under whichever name the family has for it; None if it has none."""
    return section.get(name_of(section, key))


def name_of(section: Mapping[str, Any], key: str) -> str:
    """Returns the name that a config has for a common key."""
    if section.get(key) is not None:
        return key
    return next((name for name in KEY_ALIASES.get(key, ()) if section.get(name) is not None), key)
