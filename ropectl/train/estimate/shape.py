"""The sizes of a decoder that memory and time depend on, out of its config; no torch.

Legend: h hidden size, i intermediate size, H heads, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ropectl.hf.dialects import text_section
from ropectl.hf.families import named

#: Names that families have for the number of experts of a layer, and for how many of them see a token.
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
_EXPERTS_PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "top_k_experts")


@dataclass(frozen=True)
class Shape:
    """A decoder of Llama's kind; for others what comes nearest.

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
    def of(cls, config: Mapping[str, Any]) -> Shape:
        """Returns the shape that the content of a ``config.json`` describes, completed by its class's defaults."""
        section = text_section(config)
        hidden, heads = int(_first(section, "hidden_size", "n_embd")), int(_first(section, "num_attention_heads"))
        head_dim = int(named(section, "head_dim") or hidden // heads)
        keys = int(section.get("num_key_value_heads") or heads)
        experts, per_token = (int(_first(section, *names) or 0) for names in (_EXPERTS, _EXPERTS_PER_TOKEN))
        intermediate = int(_first(section, "intermediate_size", "ffn_dim", "n_inner") or 4 * hidden)
        if experts and per_token:
            intermediate = int(section.get("moe_intermediate_size") or intermediate) * per_token
        return cls(
            num_layers=int(_first(section, "num_hidden_layers", "n_layers", "n_layer")),
            hidden=hidden,
            intermediate=intermediate,
            num_heads=heads,
            query_width=heads * head_dim,
            key_width=keys * head_dim,
            head_dim=head_dim,
            vocabulary=int(section["vocab_size"]),
            active_experts=per_token / experts if experts and per_token else 1.0,
            layer_types=tuple(sorted(set(section.get("layer_types") or ()))),
        )

    @property
    def layer_parameters(self) -> int:
        """Weights of a Llama layer of these sizes, as far as a token meets them."""
        attention = 2 * self.hidden * (self.query_width + self.key_width)
        return attention + 3 * self.hidden * self.intermediate + 2 * self.hidden


def _first(section: Mapping[str, Any], *names: str) -> Any:
    """The first of these keys that has a value, under whichever name the family has for it."""
    return next((value for name in names if (value := named(section, name)) is not None), None)
