"""Trains the model behind ``builtin:tiny`` from nothing but the installed Python.

Data: the tuning side of the standard-library corpus (``ropectl/data/text_sources/builtin.py``) and generated
passkey prompts. The run is seeded per step, so an interrupted run continues with exactly the batches
it would have seen; a checkpoint is written every ``--checkpoint-every`` steps and picked up again by
the same command.

    python scripts/train_builtin.py --work /tmp/tiny            # about an hour on two cores
    python scripts/train_builtin.py --work /tmp/tiny --export   # writes ropectl/builtin/tiny
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import random
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from ropectl.builtin import TINY_MODEL_DIR
from ropectl.data.text_sources.builtin import stdlib_documents
from ropectl.tasks.kinds.passkey import ANSWER_PREFIX, NEEDLE, QUESTION, Passkey
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.tasks.words import FILLER

BOS = "<|bos|>"


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the weights."""

    seed: int = 0
    vocab_size: int = 1024
    hidden_size: int = 256
    num_layers: int = 4
    num_heads: int = 8
    head_dim: int = 32
    intermediate_size: int = 688
    rope_theta: float = 10_000.0
    trained_length: int = 512
    steps: int = 4000
    tokens_per_step: int = 6144
    #: Sequence lengths, one drawn per step; the longest is the trained length. The first steps are
    #: short, because copying is found sooner where the distance to copy over is short.
    short_steps: int = 1000
    short_lengths: tuple[int, ...] = (112, 128, 160, 192, 256)
    lengths: tuple[int, ...] = (192, 256, 384, 512, 512)
    #: Share of sequences that are passkey prompts with the published filler / with code as filler.
    passkey_share: float = 0.30
    passkey_in_code_share: float = 0.10
    #: How much more an answer token counts than any other: it is one token in eighty.
    answer_weight: float = 8.0
    learning_rate: float = 3e-3
    final_learning_rate: float = 3e-5
    warmup_steps: int = 200
    weight_decay: float = 0.1
    clip: float = 1.0


def training_texts() -> list[str]:
    """The tuning side, in path order."""
    return [document.text for document in sorted(stdlib_documents(held_out=False), key=lambda document: document.name)]


def train_tokenizer(recipe: Recipe) -> PreTrainedTokenizerFast:
    """Byte-level BPE over the tuning side and the passkey wording; every digit is its own token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=recipe.vocab_size,
        special_tokens=[BOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    wording = Passkey.instruction + NEEDLE + QUESTION + ANSWER_PREFIX + " ".join(FILLER)
    texts = training_texts() + [wording] * 400
    tokenizer.train_from_iterator(texts, trainer)
    bos_id = tokenizer.token_to_id(BOS)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A $B", special_tokens=[(BOS, bos_id)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BOS,
        model_max_length=recipe.trained_length,
        clean_up_tokenization_spaces=False,
    )


class Batches:
    """The training batches, each a pure function of the recipe and the step number."""

    def __init__(self, recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> None:
        self._recipe = recipe
        self._tokenizer = tokenizer
        self._documents = tokenizer(training_texts(), add_special_tokens=False).input_ids
        self.num_tokens = sum(map(len, self._documents))

    def batch(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns token ids and the weights of their losses, both (B, T), B * T close to ``tokens_per_step``."""
        rng = random.Random(f"{self._recipe.seed}:{step}")
        lengths = self._recipe.short_lengths if step < self._recipe.short_steps else self._recipe.lengths
        length = rng.choice(lengths)
        rows = [self._row(rng, length) for _ in range(self._recipe.tokens_per_step // length)]
        ids = torch.tensor([row for row, _ in rows])
        weights = torch.ones(ids.shape)
        for weight, (_, num_answer) in zip(weights, rows, strict=True):
            weight[length - num_answer :] = self._recipe.answer_weight
        return ids, weights

    def _row(self, rng: random.Random, length: int) -> tuple[list[int], int]:
        """One sequence, and how many tokens at its end are a passkey answer."""
        kind = rng.random()
        bos = self._tokenizer.bos_token_id
        if kind < self._recipe.passkey_share:
            return self._passkey(rng, length, bos, in_code=False)
        if kind < self._recipe.passkey_share + self._recipe.passkey_in_code_share:
            return self._passkey(rng, length, bos, in_code=True)
        return [bos, *self._code(rng, length - 1)], 0

    def _passkey(self, rng: random.Random, length: int, bos: int, in_code: bool) -> tuple[list[int], int]:
        builder = PromptBuilder(self._tokenizer, bos, seed=rng.getrandbits(62))
        if in_code:
            builder.filler = self._code  # type: ignore[method-assign]
        trial = Passkey().build(builder, length, rng.random(), 0)
        return trial.input_ids, length - trial.answer_start

    def _code(self, rng: random.Random, count: int) -> list[int]:
        """``count`` continuous tokens of one module, modules drawn by their number of positions."""
        weights = [max(0, len(document) - count + 1) for document in self._documents]
        document = rng.choices(self._documents, weights)[0]
        start = rng.randint(0, len(document) - count)
        return document[start : start + count]


@torch.inference_mode()
def evaluate(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, length: int) -> dict[str, float]:
    """Held-out loss by position, and passkey accuracy over depths, at the trained length."""
    model.eval()
    bos = tokenizer.bos_token_id
    rows = []
    for document in stdlib_documents(held_out=True):
        ids = tokenizer.encode(document.text, add_special_tokens=False)
        if len(ids) >= length:
            rows.append([bos, *ids[: length - 1]])
    ids = torch.tensor(rows)
    nll = torch.cat(
        [
            F.cross_entropy(model(input_ids=part).logits[:, :-1].transpose(1, 2), part[:, 1:], reduction="none")
            for part in ids.split(8)
        ]
    )
    result = {
        f"nll_{a}_{b}": nll[:, a:b].mean().item() for a, b in ((0, 64), (64, 128), (128, 256), (256, 384), (384, 511))
    }
    builder, task = PromptBuilder(tokenizer, bos, seed=1), Passkey()
    for depth in (0.0, 0.25, 0.5, 0.75, 1.0):
        prompts = [task.build(builder, length, depth, number) for number in range(20)]
        ids = torch.tensor([prompt.input_ids for prompt in prompts])
        start = prompts[0].answer_start
        predicted = model(input_ids=ids).logits[:, start - 1 : -1].argmax(-1)
        result[f"passkey_{depth}"] = (predicted == ids[:, start:]).all(-1).float().mean().item()
    model.train()
    return result


def learning_rate(recipe: Recipe, step: int) -> float:
    """Linear warm-up, then half a cosine down to the final rate."""
    if step < recipe.warmup_steps:
        return recipe.learning_rate * (step + 1) / recipe.warmup_steps
    progress = (step - recipe.warmup_steps) / max(1, recipe.steps - recipe.warmup_steps)
    span = recipe.learning_rate - recipe.final_learning_rate
    return recipe.final_learning_rate + span * 0.5 * (1 + math.cos(math.pi * progress))


def build_model(recipe: Recipe) -> LlamaForCausalLM:
    torch.manual_seed(recipe.seed)
    config = LlamaConfig(
        vocab_size=recipe.vocab_size,
        hidden_size=recipe.hidden_size,
        intermediate_size=recipe.intermediate_size,
        num_hidden_layers=recipe.num_layers,
        num_attention_heads=recipe.num_heads,
        num_key_value_heads=recipe.num_heads,
        head_dim=recipe.head_dim,
        max_position_embeddings=recipe.trained_length,
        rope_parameters={"rope_type": "default", "rope_theta": recipe.rope_theta},
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=None,
    )
    return LlamaForCausalLM(config)


def save_atomically(state: object, path: Path) -> None:
    temporary = path.with_suffix(".tmp")
    torch.save(state, temporary)
    temporary.replace(path)


def train(recipe: Recipe, work: Path, checkpoint_every: int, evaluate_every: int) -> None:
    work.mkdir(parents=True, exist_ok=True)
    tokenizer_dir, checkpoint, log = work / "tokenizer", work / "checkpoint.pt", work / "log.jsonl"
    if not (tokenizer_dir / "tokenizer.json").exists():
        train_tokenizer(recipe).save_pretrained(tokenizer_dir)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(tokenizer_dir)
    batches = Batches(recipe, tokenizer)
    model = build_model(recipe)
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95), fused=True)
    first_step, seconds = 0, 0.0
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        if state["recipe"] != json.dumps(asdict(recipe)):
            raise SystemExit(f"{checkpoint} belongs to another recipe; choose another --work folder.")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first_step, seconds = state["step"], state["seconds"]
    num_parameters = sum(p.numel() for p in model.parameters())
    print(
        f"{num_parameters / 1e6:.2f} M parameters, {batches.num_tokens / 1e6:.2f} M corpus tokens, from step {first_step}",
        flush=True,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns) as progress:
        task = progress.add_task("training", total=recipe.steps, completed=first_step)
        for step in range(first_step, recipe.steps):
            began = time.perf_counter()
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(recipe, step)
            ids, weights = batches.batch(step)
            with torch.autocast("cpu", torch.bfloat16):
                logits = model(input_ids=ids, use_cache=False).logits
            nll = F.cross_entropy(logits[:, :-1].float().transpose(1, 2), ids[:, 1:], reduction="none")
            loss = (nll * weights[:, 1:]).sum() / weights[:, 1:].sum()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
            optimizer.step()
            optimizer.zero_grad()
            seconds += time.perf_counter() - began
            progress.update(task, advance=1, description=f"loss {loss.item():.3f}")
            done = step + 1
            if done % evaluate_every == 0 or done == recipe.steps:
                record = {
                    "step": done,
                    "loss": loss.item(),
                    "seconds": seconds,
                    **evaluate(model, tokenizer, recipe.trained_length),
                }
                with log.open("a") as file:
                    file.write(json.dumps(record) + "\n")
            if done % checkpoint_every == 0 or done == recipe.steps:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": done}
                save_atomically({**state, "seconds": seconds, "recipe": json.dumps(asdict(recipe))}, checkpoint)


def export(recipe: Recipe, work: Path, target: Path) -> None:
    """Writes the trained model as a bf16 checkpoint with its tokenizer and model card."""
    state = torch.load(work / "checkpoint.pt", weights_only=True)
    if state["step"] != recipe.steps or state["recipe"] != json.dumps(asdict(recipe)):
        raise SystemExit(f"{work} holds step {state['step']} of another or unfinished run.")
    model = build_model(recipe)
    model.load_state_dict(state["model"])
    model = model.to(torch.bfloat16)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(work / "tokenizer")
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    (target / "generation_config.json").unlink(missing_ok=True)
    # What ships is what is described: the bf16 weights are read back and measured in float32.
    shipped = LlamaForCausalLM.from_pretrained(target, dtype=torch.float32)
    measured = evaluate(shipped, tokenizer, recipe.trained_length)
    last = json.loads((work / "log.jsonl").read_text().splitlines()[-1])
    (target / "README.md").write_text(model_card(recipe, last, measured, shipped.num_parameters()))
    print(json.dumps(measured, indent=2))


def model_card(recipe: Recipe, last: dict[str, Any], measured: dict[str, float], num_parameters: int) -> str:
    settings = "\n".join(f"- {name}: {value}" for name, value in asdict(recipe).items())
    results = "\n".join(f"| {name} | {value:.4f} |" for name, value in measured.items())
    return f"""# builtin:tiny

A Llama of {num_parameters / 1e6:.2f} M parameters, trained at {recipe.trained_length} tokens, so that context extension can be
tried and tested with nothing downloaded. It models Python source and retrieves planted numbers; it is
good for nothing else.

- Data: the standard-library sources of CPython {platform.python_version()} (PSF licence), tuning side of the split in
  `ropectl/data/text_sources/builtin.py` (three modules in four), and generated passkey prompts. No held-out module
  was trained on.
- Made by: `python scripts/train_builtin.py --work DIR`, then the same with `--export`
- Steps: {last["step"]}, training time: {last["seconds"] / 60:.0f} minutes on two CPU cores, final training loss: {last["loss"]:.4f}
- Weights: bfloat16, Apache-2.0

## Recipe

{settings}

## Measured on the shipped weights

Loss in nats a token on the held-out side, by position; passkey accuracy at {recipe.trained_length} tokens by depth (20 prompts each).

| what | value |
|---|---|
{results}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for tokenizer, checkpoint and log")
    parser.add_argument("--steps", type=int, default=Recipe.steps)
    parser.add_argument("--checkpoint-every", type=int, default=100)
    parser.add_argument("--evaluate-every", type=int, default=250)
    parser.add_argument("--export", action="store_true", help="write the finished model instead of training")
    parser.add_argument("--target", type=Path, default=TINY_MODEL_DIR, help="where --export writes")
    arguments = parser.parse_args()
    recipe = Recipe(steps=arguments.steps)
    if arguments.export:
        export(recipe, arguments.work, arguments.target)
    else:
        train(recipe, arguments.work, arguments.checkpoint_every, arguments.evaluate_every)


if __name__ == "__main__":
    main()
