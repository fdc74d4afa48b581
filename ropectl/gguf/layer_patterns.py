"""Says which layers of a GGUF file see a window only, and what they rotate by: llama.cpp's code adds it to the header.

Read in llama.cpp's ``src/models/*.cpp`` (``load_arch_hparams`` and the graphs, sources of 2026). A file may say the pattern
itself, as a period or as a list with one entry a layer; where it says none, the code has a period of its own. Layer i has
a window if i mod period < period - 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ropectl.gguf.header import GgufHeader

#: Base of the windowed layers where they have one of their own and the file does not say it.
DEFAULT_LOCAL_ROPE_THETA = 10_000.0

#: Architectures that rotate whole heads by the default base although their files say nothing of it.
_ROTATE_UNSAID = ("gemma", "gemma2")

#: Architectures in which ``rope.scaling.finetuned`` says whether anything rotates; a file without it does.
_SWITCHED = ("granite", "granite_swa", "granitehybrid", "granitemoe")

_FULL, _SLIDING, _CHUNKED = "full_attention", "sliding_attention", "chunked_attention"


@dataclass(frozen=True)
class LayerPattern:
    """The windows that the code of an architecture gives its layers.

    Attributes:
        period: Every so many layers one sees the whole context.
        window: The width where the file does not say one; None for no windows then [tokens].
        depth: The only number of layers with which there are windows; None for any.
        chunked: Whether windows are chunks: they start anew and do not slide. Their width is the code's own.
        local_theta: The base of windowed layers, which no scaling reaches, where the file does not say it; 0 for that of
            the others, whatever the file says. None where all layers share base and scaling.
        model_type: The ``model_type`` of transformers for files with windows, where it is another.
    """

    period: int
    window: int | None = None
    depth: int | None = None
    chunked: bool = False
    local_theta: float | None = None
    model_type: str | None = None


#: Architecture -> its pattern.
PATTERNS = {
    "afmoe": LayerPattern(4),
    "cohere2": LayerPattern(4),
    "exaone4": LayerPattern(4, window=4096, depth=64),
    "gemma2": LayerPattern(2, window=4096),
    "gemma3": LayerPattern(6, local_theta=DEFAULT_LOCAL_ROPE_THETA),
    "gemma3n": LayerPattern(5, local_theta=DEFAULT_LOCAL_ROPE_THETA),
    "gpt-oss": LayerPattern(2),
    "llama4": LayerPattern(4, window=8192, chunked=True),
    "mellum": LayerPattern(4),
    "olmo2": LayerPattern(4, local_theta=0.0, model_type="olmo3"),
}


def rotates(header: GgufHeader) -> bool:
    """Returns whether anything rotates in the model of a file."""
    if header.architecture in _SWITCHED and header.own("rope.scaling.finetuned") is False:
        return False
    is_said = header.own("rope.freq_base") is not None or header.own("rope.dimension_count") is not None
    return is_said or header.architecture in _ROTATE_UNSAID


def with_layer_pattern(config: Mapping[str, Any], header: GgufHeader) -> dict[str, Any]:
    """Returns the config of a header, completed by the layers that its architecture's code gives windows.

    Args:
        config: What the keys alone say, with ``rope_theta`` and ``rope_scaling``.
        header: The file's header.
    """
    if header.architecture in _SWITCHED:
        config = {**config, "position_embedding_type": "rope"}  # by which transformers says the same of Granite
    pattern, windowed = PATTERNS.get(header.architecture), _windowed(header)
    if not windowed:
        return dict(config)
    kind = _CHUNKED if pattern and pattern.chunked else _SLIDING
    result = {**config, "layer_types": [kind if each else _FULL for each in windowed]}
    if pattern and pattern.chunked:
        result["attention_chunk_size"] = pattern.window
        result.pop("sliding_window", None)
    elif pattern and not result.get("sliding_window"):
        result["sliding_window"] = pattern.window
    if pattern and pattern.model_type:
        result["model_type"] = pattern.model_type
    local = pattern.local_theta if pattern else None
    local = local if local == 0 else header.own("rope.freq_base_swa", local)
    if local is None:
        return result
    theta, scaling = result.pop("rope_theta"), result.pop("rope_scaling")
    result["rope_parameters"] = {
        _FULL: {"rope_type": "default", **(scaling or {}), "rope_theta": theta},
        kind: {"rope_type": "default", "rope_theta": local or theta},
    }
    return result


def _windowed(header: GgufHeader) -> list[bool]:
    """Returns for each layer whether it has a window; empty where the file and the code say nothing of windows."""
    pattern, depth = PATTERNS.get(header.architecture), header.own("block_count")
    said = header.own("attention.sliding_window_pattern")
    width = header.own("attention.sliding_window", pattern.window if pattern else None)
    if not width or not isinstance(depth, int):
        return []
    if isinstance(said, list) and said:
        return [bool(said[layer % len(said)]) for layer in range(depth)]
    if said is None and (pattern is None or pattern.depth not in (None, depth)):
        return []
    period = said if isinstance(said, int) else pattern.period if pattern else 0
    return [period == 0 or layer % period < period - 1 for layer in range(depth)]
