"""What differs between model families, as data."""

from __future__ import annotations

#: Keys of ``rope_parameters`` that say how a family applies rotations, not how fast they are. A patch
#: keeps them.
KEPT_ROPE_KEYS = ("partial_rotary_factor", "mrope_section", "mrope_interleaved", "llama_4_scaling_beta")

#: Modules under these names rotate something other than text.
NON_TEXT_PARTS = ("vision", "visual", "audio", "image")

#: Model types whose config.json, where it names base, length and heads, means what it says: the classes
#: add no rotary defaults of their own. All others are read through their transformers class.
SELF_CONTAINED_CONFIGS = ("llama", "mistral", "mixtral", "qwen2", "olmo", "olmo2")
