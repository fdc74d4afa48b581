"""``compare-methods --dry-run``: the time and memory that a comparison would take, without loading weights or writing files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from ropectl.compare.budget import Budget, LeftOut, in_order
from ropectl.compare.cells import ComparisonCell
from ropectl.compare.factory import model_cells
from ropectl.compare.plan import ComparedModel, make_plan
from ropectl.compare.run import check_budget, default_folder
from ropectl.compare.tuned.recipe import read_recipe
from ropectl.errors import RopectlError
from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.cost import ForwardCost, ForwardPass
from ropectl.evaluate.forward import LOGITS_PER_CHUNK
from ropectl.evaluate.forward_speed import forward_speed
from ropectl.hf.config.source import source_config
from ropectl.hf.model.loading import resolve_device, resolve_dtype
from ropectl.hf.model.model_class import bare_model
from ropectl.hf.model_shape import ModelShape
from ropectl.memory import free_memory
from ropectl.records import SCHEMA_VERSION, to_json
from ropectl.reporter import Reporter
from ropectl.rope.derived import derived_values
from ropectl.runs import RunFolder, command_line, package_versions
from ropectl.timing.operations import NOTHING, Cost
from ropectl.timing.speed import Span, Speed

#: Logits of a chunk are held as computed, in float32, and once more by the loss [bytes an entry].
_BYTES_PER_LOGIT = 12


def estimate_comparison(
    config: CompareConfig | None = None,
    out: Path | str | None = None,
    reporter: Reporter | None = None,
    retry_failed: bool = False,
    budget: float | None = None,
) -> dict[str, Any]:
    """Returns the cells, tokens, operations, time and memory that a comparison would take, model by model.

    Args:
        config: The settings of the comparison.
        out: Run folder; cells that it already holds are counted separately.
        reporter: Receives notes.
        retry_failed: Whether cells that failed before would be measured again.
        budget: A limit of time, to see what would fit [s].

    Raises:
        RopectlError: If the request cannot work.
    """
    config, reporter = config or CompareConfig(), reporter or Reporter()
    check_budget(config, budget)
    asked = RunFolder(Path(out)) if out else None
    recipe = read_recipe(config)
    plan = make_plan(config, reporter)
    grids = [model_cells(plan, model) for model in plan.models]
    folder = asked or RunFolder(default_folder(plan.base.setup.source, grids, ()))
    models, entries = [], []
    for number, (model, by_method) in enumerate(zip(plan.models, grids, strict=True)):
        cells = [cell for own in by_method.values() for cell in own]
        missing = [cell for cell in cells if cell.record_in(folder, not retry_failed) is None]
        resources, speed = _resources(model, missing)
        entries += [(number, cell, None if speed is None else speed.seconds(cell.cost)) for cell in missing]
        models.append(
            {
                "model": model.name,
                "methods": [str(method) for method in model.methods],
                "derived": _derived(model, plan.target_length),
                "cells": len(cells),
                "finished": len(cells) - len(missing),
                "kinds": [_kind(kind, missing) for kind in dict.fromkeys(cell.kind for cell in cells)],
                **resources,
            }
        )
    if recipe is not None:
        reporter.note(
            "Trainings and the measurements after them are not part of this estimate. For one training: ropectl finetune "
            f"{config.model} -m SPEC --seq-len {recipe.shared.seq_len or plan.target_length} --config {recipe.file} --dry-run"
        )
    return {
        "schema_version": SCHEMA_VERSION,
        "estimate": True,
        "lengths": plan.lengths,
        "models": models,
        "budget": None if budget is None else _within(budget, entries),
        "config": plan.config.model_dump(mode="json"),
        "versions": package_versions(),
        "command": command_line(),
    }


def _derived(model: ComparedModel, target_length: int) -> dict[str, Any]:
    """Returns the derived values of each method, by its spec; of those that follow the length at the target."""
    geometry = model.setup.geometry
    lengths = {method: target_length if method.depends_on_seq_len else None for method in model.methods}
    return {
        str(method): {name: to_json(value) for name, value in derived_values(method, geometry, None, length).items()}
        for method, length in lengths.items()
    }


def _kind(kind: str, cells: Sequence[ComparisonCell]) -> dict[str, Any]:
    own = [cell for cell in cells if cell.kind == kind]
    return {
        "kind": kind,
        "cells": len(own),
        "tokens": sum(cell.tokens for cell in own),
        "flops": sum(cell.cost.total for cell in own),
    }


def _within(budget: float, entries: Sequence[tuple[int, ComparisonCell, Span | None]]) -> dict[str, Any]:
    """Returns what a budget would leave out, as :class:`ropectl.compare.measure.CellRunner` decides it."""
    expected = {id(cell): span for _, cell, span in entries}
    if None in expected.values():
        return {"seconds": budget, "cells": len(entries), "left_out": None, "sentence": None}
    taken, left_out = 0.0, []
    limit = Budget(budget, began=0.0, clock=lambda: taken)
    for _, cell in in_order([(number, cell) for number, cell, _ in entries], by_model=False):
        span = expected[id(cell)] or Span()
        if limit.allows(span if taken else None):
            taken += span.middle
        else:
            left_out.append(cell)
    longer = sum((expected[id(cell)] or Span() for cell in left_out), Span())
    sentence = LeftOut(left_out, len(entries), longer).sentence if left_out else None
    return {"seconds": budget, "cells": len(entries), "left_out": len(left_out), "sentence": sentence}


def _resources(model: ComparedModel, missing: Sequence[ComparisonCell]) -> tuple[dict[str, Any], Speed | None]:
    """Returns time and memory of the missing cells, and the speed; if the model cannot be built without its weights, the reason."""
    source, config = model.setup.source, model.setup.config
    assert isinstance(config, CompareConfig)
    device = resolve_device(config.device)
    free = free_memory(device)
    if not missing:
        nothing = {"seconds": 0.0, "seconds_low": 0.0, "seconds_high": 0.0}
        return {"time": nothing, "memory": {"total": 0, "free": free, "parts": {}}}, None
    try:
        model_config = source_config(source, config.trust_remote_code)
        if config.attention:
            model_config._attn_implementation = config.attention
        dtype = getattr(torch, resolve_dtype(config.dtype, device.type, source.config) or "float32")
        forward = ForwardCost.of(source.config)
        memory = _memory(model, missing, model_config, dtype)
        longest = max(cell.length for cell in missing)
        measured = forward_speed(
            model_config, forward, longest, dtype, device, config.batch_size, config.trust_remote_code
        )
    except (RopectlError, RuntimeError, ValueError, TypeError, AttributeError, KeyError) as error:
        # A class may refuse to be built small in many ways; cells and tokens are reported all the same.
        return {"time": {"seconds": None, "reason": str(error).split("\n")[0]}, "memory": None}, None
    speed = measured.speed
    kinds = {
        kind: speed.seconds(sum((cell.cost for cell in missing if cell.kind == kind), NOTHING))
        for kind in dict.fromkeys(cell.kind for cell in missing)
    }
    whole = forward.of_pass(ForwardPass(config.batch_size, longest, scored=config.batch_size * longest))
    rates = {
        "layers": (whole.weights + whole.attention) / speed.seconds(replace(whole, head=0.0)).middle,
        "head": whole.head / max(1e-9, speed.seconds(Cost(head=whole.head)).middle),
    }
    time = {
        **measured.time_record(sum(kinds.values(), Span())),
        "kinds": {kind: span.middle for kind, span in kinds.items()},
        "kinds_low": {kind: span.low for kind, span in kinds.items()},
        "kinds_high": {kind: span.high for kind, span in kinds.items()},
        "calibration": {"length": measured.longest, **rates, **measured.to_json()},
        "left_out": ["loading the weights"],
    }
    return {"time": time, "memory": {"total": sum(memory.values()), "free": free, "parts": memory}}, speed


def _memory(
    compared: ComparedModel, cells: Sequence[ComparisonCell], model_config: Any, dtype: torch.dtype
) -> dict[str, int]:
    """Returns the bytes of each part, for the cell that needs most."""
    shape = ModelShape.of(compared.setup.source.config)
    model = bare_model(model_config, dtype, "meta", compared.setup.config.trust_remote_code)
    size = dtype.itemsize
    cache, window = max(cell.cached for cell in cells), max(cell.window for cell in cells)
    # Of a layer: its input and the residual, queries, keys, values and their rotated copies, and the wide half of the MLP.
    width = 3 * shape.hidden + 2 * (shape.query_width + 2 * shape.key_width) + 3 * shape.intermediate
    return {
        "weights": sum(parameter.numel() for parameter in model.parameters()) * size,
        "key-value cache": 2 * shape.num_layers * shape.key_width * cache * size,
        "activations": window * width * size,
        "logits": min(LOGITS_PER_CHUNK, window * shape.vocabulary) * _BYTES_PER_LOGIT,
    }
