"""The speed of this machine in a forward pass, measured on one layer and on two with random weights."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from ropectl.evaluate.cost import Cost, ForwardCost
from ropectl.evaluate.forward import logits_at_once
from ropectl.hf.model.model_class import bare_model, cut

#: The first length that is tried [tokens], and how long a pass must take for its length to be enough [s].
FIRST_LENGTH, LONG_ENOUGH = 128, 0.3

REPETITIONS = 3


@dataclass(frozen=True)
class Speed:
    """The speed of this machine.

    Attributes:
        layers: Operations per second in the decoder layers.
        head: Operations per second in the output head, including the loss over its logits.
        length: Tokens of the pass that was timed.
    """

    layers: float
    head: float
    length: int

    def seconds(self, cost: Cost) -> float:
        """Returns how long a measurement takes."""
        return cost.layers / self.layers + cost.head / self.head


@torch.no_grad()
def measure_speed(
    config: Any, forward: ForwardCost, longest: int, dtype: torch.dtype, device: Any, remote_code: bool = False
) -> Speed:
    """Returns the speed of a model's forward pass, without its weights.

    Args:
        config: The model's transformers config.
        forward: The cost of its passes.
        longest: Tokens of the longest window; lengths are doubled up to it until a pass takes long enough.
        dtype: Type of the weights.
        device: Where it runs.
        remote_code: Whether the class comes with the checkpoint.

    Raises:
        ConfigError: If the class cannot be built.
    """
    num_layers = config.get_text_config(decoder=True).num_hidden_layers
    one = bare_model(cut(config, 1), dtype, device, remote_code).eval()
    length = min(FIRST_LENGTH, longest)
    while length < longest and _decoder_seconds(one, length, device) < LONG_ENOUGH / 2:
        length = min(2 * length, longest)
    first = _decoder_seconds(one, length, device)
    rows = min(length, logits_at_once(one))
    read = _head_seconds(one, rows, device)
    del one
    both = _decoder_seconds(bare_model(cut(config, 2), dtype, device, remote_code).eval(), length, device)
    layer = max(both - first, both / 4)  # a layer takes some time, whatever the clock says
    return Speed(
        layers=forward.window(length, 0).layers / num_layers / layer,
        head=max(1.0, forward.window(0, rows).head) / read,
        length=length,
    )


def _decoder_seconds(model: Any, length: int, device: Any) -> float:
    """Returns the seconds of a pass of the layers over one sequence."""
    ids = torch.zeros(1, length, dtype=torch.long, device=device)
    return fastest(partial(model.get_decoder(), input_ids=ids, use_cache=False), device)


def _head_seconds(model: Any, rows: int, device: Any) -> float:
    """Returns the seconds of the logits of so many tokens, and their loss."""
    weight = model.get_output_embeddings().weight
    states = torch.zeros(rows, weight.shape[1], dtype=weight.dtype, device=device)
    targets = torch.zeros(rows, dtype=torch.long, device=device)
    return fastest(lambda: F.cross_entropy(model.get_output_embeddings()(states).float(), targets), device)


def fastest(work: Callable[[], Any], device: Any, tries: int = REPETITIONS) -> float:
    """Returns the seconds of the fastest of a few tries, because anything else the machine does only adds time.

    Args:
        work: The function to time.
        device: Where it runs.
        tries: Number of tries, after one that warms up memory and kernels.
    """
    times = []
    for _ in range(tries + 1):
        _settle(device)
        began = time.perf_counter()
        work()
        _settle(device)
        times.append(time.perf_counter() - began)
    return min(times[1:])


def _settle(device: Any) -> None:
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
