"""The speed of a model's forward pass on this machine, without its weights."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from ropectl.evaluate.calibration import Calibration, calibrate, layer_counts, part_of
from ropectl.evaluate.cost import ForwardCost, ForwardPass
from ropectl.evaluate.forward import logits_at_once
from ropectl.evaluate.short_passes import ShortPass, TimedPass, doublings, time_passes
from ropectl.hf.model.model_class import bare_model, cut


def forward_speed(
    config: Any,
    forward: ForwardCost,
    longest: int,
    dtype: torch.dtype,
    device: Any,
    rows: int = 1,
    remote_code: bool = False,
) -> Calibration:
    """Returns the speed of a model's forward pass.

    Args:
        config: The model's transformers config, with the attention implementation that is used.
        forward: The cost of its passes.
        longest: Tokens of the longest window.
        dtype: Type of the weights.
        device: Where it runs.
        rows: Windows side by side.
        remote_code: Whether the class comes with the checkpoint.

    Raises:
        ConfigError: If the class cannot be built.
    """
    num_layers = config.get_text_config(decoder=True).num_hidden_layers

    def passes(layers: int) -> Iterator[TimedPass]:
        model = bare_model(cut(config, layers), dtype, device, remote_code).eval()

        def one(length: int) -> ShortPass:
            ids = torch.zeros(rows, length, dtype=torch.long, device=device)
            cost = part_of(forward.of_pass(ForwardPass(rows, length)), layers, num_layers)
            run = partial(model.get_decoder(), input_ids=ids, use_cache=False)
            return ShortPass(layers, rows, length, cost, run)

        with torch.no_grad():
            yield from time_passes([one(length) for length in doublings(longest)], device, share=0.45)
            if layers == 1:
                yield from time_passes([_head_pass(model, forward, rows * longest)], device, share=0.1)

    return calibrate(passes, layer_counts(num_layers, forward.layers * dtype.itemsize), device)


def _head_pass(model: Any, forward: ForwardCost, tokens: int) -> ShortPass:
    """Returns the logits of as many tokens as are held together, and their loss."""
    head = model.get_output_embeddings()
    tokens = min(tokens, logits_at_once(model))
    states = torch.zeros(tokens, head.weight.shape[1], dtype=head.weight.dtype, device=head.weight.device)
    targets = torch.zeros(tokens, dtype=torch.long, device=head.weight.device)
    cost = forward.of_sums(0, 0, 0, tokens)
    return ShortPass(0, 1, tokens, cost, lambda: F.cross_entropy(head(states).float(), targets))
