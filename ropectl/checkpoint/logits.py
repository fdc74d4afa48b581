"""``--verify-logits``: compares the patched model in memory with the written one in a process without ropectl."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ropectl.checkpoint.plan import PatchPlan
from ropectl.checkpoint.weights import checkpoint_dtype
from ropectl.errors import PatchError
from ropectl.hf.model.loading import LoadOptions, load_model, resolve_device

#: Tokens that are compared; their positions are spread over the whole target length.
NUM_POSITIONS = 64

#: Largest accepted difference, relative to the largest logit. The two run the same operations.
LOGIT_TOLERANCE = 1e-5

#: Longest message of another process that is passed on [characters].
MAX_MESSAGE = 500
#: Runs in the fresh process; ropectl must not be loaded there.
_PROBE = """
import json, sys, torch, transformers
from safetensors.torch import save_file
task = json.load(open(sys.argv[1]))
assert "ropectl" not in sys.modules
model = getattr(transformers, task["class"]).from_pretrained(
    task["folder"], dtype=task["dtype"], trust_remote_code=task["trust_remote_code"], use_safetensors=task["safetensors"]
).to(task["device"]).eval()
with torch.no_grad():
    ids, positions = (torch.tensor([task[name]], device=task["device"]) for name in ("ids", "positions"))
    # The mask says that all tokens belong together; without it, gaps between positions mean separate sequences.
    logits = model(input_ids=ids, position_ids=positions, attention_mask=torch.ones_like(ids), use_cache=False).logits
save_file({"logits": logits.float().cpu().contiguous()}, task["out"])
"""


def compare_logits(folder: Path, plan: PatchPlan, options: LoadOptions) -> dict[str, Any]:
    """Returns how far the logits of the written checkpoint are from those of the patched model.

    Args:
        folder: The checkpoint as written.
        plan: What was done to the source.
        options: How the source is loaded.

    Raises:
        PatchError: If the logits differ, or the fresh process fails.
    """
    import torch
    from safetensors.torch import load_file

    from ropectl.hf.model.model_class import loader
    from ropectl.hf.model.patch import apply_rope

    dtype = checkpoint_dtype(plan.source.config) if options.dtype == "auto" else options.dtype
    model = load_model(plan.source, LoadOptions(**{**vars(options), "dtype": dtype}))
    ids, positions = _probe_input(model.get_input_embeddings().weight.shape[0], plan.target_length)
    device = resolve_device(options.device)
    how: dict[str, Any] = {"geometry": plan.geometry, "seq_len": plan.seq_len, "layers": plan.source.rope.layer_type}
    with torch.no_grad(), apply_rope(model, plan.method, **how):
        input_ids, position_ids = (torch.tensor([values], device=device) for values in (ids, positions))
        inputs = {"input_ids": input_ids, "position_ids": position_ids, "attention_mask": torch.ones_like(input_ids)}
        ours = model(**inputs, use_cache=False).logits.float().cpu()
    del model
    with tempfile.TemporaryDirectory() as scratch:
        task = {
            "folder": str(folder), "dtype": dtype, "device": str(device), "ids": ids, "positions": positions,
            "trust_remote_code": options.trust_remote_code, "safetensors": None if options.allow_pickle else True,
            "class": loader(plan.source.config).__name__, "out": str(Path(scratch) / "logits.safetensors"),
        }  # fmt: skip
        file = Path(scratch) / "task.json"
        file.write_text(json.dumps(task))
        done = subprocess.run([sys.executable, "-c", _PROBE, str(file)], capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise PatchError(f"A fresh process cannot run the written checkpoint: {last[:MAX_MESSAGE]}")
        theirs = load_file(str(task["out"]))["logits"]
    difference = float((ours - theirs).abs().max() / ours.abs().max().clamp_min(1e-9))
    if not difference <= LOGIT_TOLERANCE:
        raise PatchError(
            f"The written checkpoint computes other logits than the patched model: largest relative difference "
            f"{difference:.2g}, allowed {LOGIT_TOLERANCE:g}."
        )
    return {
        "max_relative_difference": difference,
        "positions": len(positions),
        "last_position": positions[-1],
        "dtype": dtype,
    }


def _probe_input(vocabulary: int, target_length: int) -> tuple[list[int], list[int]]:
    """Returns random token ids, and positions from 0 to the last one, evenly spread and all different."""
    count = min(NUM_POSITIONS, target_length)
    chooser = random.Random(0)
    ids = [chooser.randrange(vocabulary) for _ in range(count)]
    return ids, [round(k * (target_length - 1) / max(count - 1, 1)) for k in range(count)]
