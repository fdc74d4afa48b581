"""Training steps on long sequences: ropectl with the loss in chunks and with whole logits, and transformers' Trainer.

The model is a small random Llama whose vocabulary is the one thing that grows. Each case runs in a process of its
own, which trains on the same random tokens with AdamW at the same learning rate and reports tokens per second of its
steps after the first, its peak resident set above what it held once the model was loaded, and the loss of every step.
That all losses agree is asserted. Repetitions are interleaved, the median time and the least memory are printed.

    python scripts/bench/finetune.py [--length 2048] [--vocabulary 32000 128256] [--steps 3] [--repeat 3]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

WAYS = ("ropectl, chunks", "ropectl, whole", "Trainer")
RATE = 1e-4
TOLERANCE = 1e-4  # of a loss, relative: the same float32 arithmetic in another order


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def make_model(length: int, vocabulary: int) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary, hidden_size=256, intermediate_size=688, num_hidden_layers=4, num_attention_heads=8,
            max_position_embeddings=length, tie_word_embeddings=True, use_cache=False,
        )
    )  # fmt: skip


def make_tokens(length: int, vocabulary: int, steps: int) -> Any:
    import torch

    return torch.randint(0, vocabulary, (steps, length), generator=torch.Generator().manual_seed(1))


def run_ropectl(model: Any, tokens: Any, chunk: int | None) -> tuple[list[float], list[float], float]:
    """Losses, seconds of each step, and the peak before the first one [MiB]; the step is that of ropectl's loop."""
    import torch

    from ropectl.train.data.samples import IGNORE
    from ropectl.train.engine.accelerator import make_accelerator
    from ropectl.train.engine.engine import Engine
    from ropectl.train.engine.loss import CausalLoss
    from ropectl.train.settings import FinetuneSettings

    settings = FinetuneSettings(device="cpu", precision="fp32", learning_rate=RATE, beta2=0.999, clip=1.0)
    engine = Engine.prepare(make_accelerator(settings), CausalLoss(model, chunk), settings)
    model.train()
    losses, seconds, before = [], [], peak_mib()
    for row in tokens:
        began = time.perf_counter()
        ids = row.unsqueeze(0)
        targets = torch.cat([ids[:, 1:], torch.full((1, 1), IGNORE)], dim=1)
        total = float((targets != IGNORE).sum())
        loss = engine.loss(input_ids=ids, targets=targets)
        engine.backward(loss, total)
        engine.accelerator.clip_grad_norm_(engine.loss.parameters(), settings.clip)
        engine.optimizer.step()
        engine.optimizer.zero_grad()
        losses.append(loss.item() / total)
        seconds.append(time.perf_counter() - began)
    return losses, seconds, before


def run_trainer(model: Any, tokens: Any, folder: str) -> tuple[list[float], list[float], float]:
    """The same from transformers' Trainer: labels in, whole logits inside."""
    from transformers import Trainer, TrainerCallback, TrainingArguments

    losses: list[float] = []
    seconds: list[float] = []

    class Clock(TrainerCallback):
        def on_step_begin(self, *arguments: Any, **more: Any) -> None:
            self.began = time.perf_counter()

        def on_step_end(self, *arguments: Any, **more: Any) -> None:
            seconds.append(time.perf_counter() - self.began)

        def on_log(self, *arguments: Any, logs: dict[str, float] | None = None, **more: Any) -> None:
            losses.extend([float(logs["loss"])] if logs and "loss" in logs else [])

    arguments = TrainingArguments(
        output_dir=folder, max_steps=len(tokens), per_device_train_batch_size=1, learning_rate=RATE,
        lr_scheduler_type="constant", weight_decay=0.0, max_grad_norm=1.0, optim="adamw_torch_fused", logging_steps=1,
        save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, dataloader_drop_last=False,
    )  # fmt: skip
    rows = [{"input_ids": row, "labels": row} for row in tokens]

    class InOrder(Trainer):
        def _get_train_sampler(self, *arguments: Any) -> Any:
            from torch.utils.data import SequentialSampler

            return SequentialSampler(rows)

    trainer = InOrder(model=model, args=arguments, train_dataset=rows, callbacks=[Clock()])
    before = peak_mib()
    trainer.train()
    return losses, seconds, before


def measure(way: str, length: int, vocabulary: int, steps: int) -> None:
    model, tokens = make_model(length, vocabulary), make_tokens(length, vocabulary, steps)
    if way == WAYS[2]:
        with tempfile.TemporaryDirectory() as folder:
            losses, seconds, before = run_trainer(model, tokens, folder)
    else:
        losses, seconds, before = run_ropectl(model, tokens, None if way == WAYS[0] else 0)
    print(json.dumps({"losses": losses, "seconds": seconds, "mib": peak_mib() - before}))


def apart(way: str, length: int, vocabulary: int, steps: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--way", way, "--length", length, "--vocabulary", vocabulary, "--steps", steps]
    environment = {**os.environ, "TRANSFORMERS_VERBOSITY": "error"}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{way}, {vocabulary} tokens, failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def check_losses(results: dict[str, list[dict[str, Any]]], steps: int) -> None:
    expected = results[WAYS[2]][0]["losses"]
    assert len(expected) == steps, expected
    for way, runs in results.items():
        for run in runs:
            for ours, theirs in zip(run["losses"], expected, strict=True):
                assert abs(ours - theirs) <= TOLERANCE * theirs, (way, run["losses"], expected)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=2048, help="tokens of a sequence")
    parser.add_argument("--vocabulary", type=int, nargs="+", default=[32_000, 128_256])
    parser.add_argument("--steps", type=int, default=3, help="optimizer steps of a case; the first is not timed")
    parser.add_argument("--repeat", type=int, default=3, help="runs of every case")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.steps < 2:
        parser.error("--steps: at least 2, the first of which is not timed")
    if arguments.way:
        measure(arguments.way, arguments.length, arguments.vocabulary[0], arguments.steps)
        return
    folder = Path(__file__).resolve().parents[2]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    print(f"{arguments.length} tokens a sequence, float32; peak above the loaded model; ratios to Trainer")
    print(f"{'vocabulary':>10}  {'way':<16} {'tokens/s':>9} {'ratio':>6} {'peak MiB':>9} {'ratio':>6}")
    for vocabulary in arguments.vocabulary:
        results: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
        for _ in range(arguments.repeat):
            for way in WAYS:
                results[way].append(apart(way, arguments.length, vocabulary, arguments.steps))
        check_losses(results, arguments.steps)
        speed = {
            way: arguments.length / statistics.median(second for run in runs for second in run["seconds"][1:])
            for way, runs in results.items()
        }
        memory = {way: min(run["mib"] for run in runs) for way, runs in results.items()}
        for way in WAYS:
            print(
                f"{vocabulary:>10}  {way:<16} {speed[way]:>9.0f} {speed[way] / speed[WAYS[2]]:>6.2f} "
                f"{memory[way]:>9.0f} {memory[way] / memory[WAYS[2]]:>6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
