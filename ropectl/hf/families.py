"""What differs between model families, as data."""

from __future__ import annotations

#: Keys of ``rope_parameters`` that say how a family applies rotations, not how fast they are. A patch
#: keeps them.
KEPT_ROPE_KEYS = ("partial_rotary_factor", "mrope_section", "mrope_interleaved")

#: Modules under these names rotate something other than text.
NON_TEXT_PARTS = ("vision", "visual", "audio", "image")

#: Model types whose config.json, where it names base, length and heads, means what it says: the classes
#: add no rotary defaults of their own. All others are read through their transformers class.
SELF_CONTAINED_CONFIGS = ("llama", "mistral", "mixtral", "qwen2", "olmo", "olmo2")

#: Families whose attention reads the scaling block a second time, beside the rotary module: another
#: method in the block would change more than rotations, or stop the model. Key or type -> reason.
REFUSED_CONFIG_KEYS = {
    "qk_rope_head_dim": "multi-head latent attention takes its softmax scale from the scaling block when it is built",
}
REFUSED_ROPE_KEYS = {
    "llama_4_scaling_beta": "its queries are scaled by position, from the trained length in the scaling block",
}
REFUSED_MODEL_TYPES = {
    "phimoe": "its rotary module reads the attention factors of longrope whatever the type",
}
