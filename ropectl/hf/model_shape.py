"""Reads from a config the sizes of a decoder that memory and time depend on; no torch.

Legend: h hidden size, i intermediate size, H heads, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ropectl.errors import UnsupportedModelError
from ropectl.hf.config.dialects import text_section
from ropectl.hf.config.families import named

#: Names that families have for the number of experts of a layer, and for how many of them see a token.
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
_EXPERTS_PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "top_k_experts")


@dataclass(frozen=True)
class ModelShape:
    """The sizes of a Llama-like decoder; for other architectures the nearest equivalents.

    Attributes:
        num_layers: Decoder layers.
        hidden: h.
        intermediate: i, over all experts that see a token.
        num_heads: H.
        query_width: Width of all query heads.
        key_width: Width of all key heads, and of all value heads.
        head_dim: Width of a head.
        vocabulary: V.
        active_experts: Share of a layer's experts that see a token, in (0, 1]; 1 without experts.
        layer_types: The different kinds of layers that the config names.
    """

    num_layers: int
    hidden: int
    intermediate: int
    num_heads: int
    query_width: int
    key_width: int
    head_dim: int
    vocabulary: int
    active_experts: float = 1.0
    layer_types: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ModelShape:
        """Returns the shape that the content of a ``config.json`` describes, completed by its class's defaults.

        Raises:
            UnsupportedModelError: If it does not say what is needed.
        """
        section = text_section(config)
        hidden, heads = _needed(section, "hidden_size", "n_embd"), _needed(section, "num_attention_heads", "n_head")
        head_dim = _known(section, "head_dim") or hidden // heads
        keys = _known(section, "num_key_value_heads", "num_kv_heads") or heads
        experts, per_token = _known(section, *_EXPERTS), _known(section, *_EXPERTS_PER_TOKEN)
        intermediate = _known(section, "intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner") or 4 * hidden
        if experts and per_token:
            intermediate = (_known(section, "moe_intermediate_size") or intermediate) * per_token
        return cls(
            num_layers=_needed(section, "num_hidden_layers", "n_layers", "n_layer", "num_layers"),
            hidden=hidden,
            intermediate=intermediate,
            num_heads=heads,
            query_width=heads * head_dim,
            key_width=keys * head_dim,
            head_dim=head_dim,
            vocabulary=_needed(section, "vocab_size"),
            active_experts=per_token / experts if experts and per_token else 1.0,
            layer_types=tuple(sorted(set(section.get("layer_types") or ()))),
        )

    @property
    def layer_parameters(self) -> int:
        """Weights of a Llama layer of these sizes, as far as a token meets them."""
        attention = 2 * self.hidden * (self.query_width + self.key_width)
        return attention + 3 * self.hidden * self.intermediate + 2 * self.hidden


def _known(section: Mapping[str, Any], *names: str) -> int:
    """Returns the first of these keys that has a value, under whichever name the family has for it; 0 where none has."""
    value = next((value for name in names if (value := named(section, name))), 0)
    return int(max(value) if isinstance(value, list) else value)  # where layers differ, the largest


def _needed(section: Mapping[str, Any], *names: str) -> int:
    value = _known(section, *names)
    if not value:
        raise UnsupportedModelError(f"The config does not say {names[0]}: memory and time cannot be estimated.")
    return value
