"""The real lm-evaluation-harness on a task of a few lines, against log-likelihoods worked out here.

Needs the package (``pip install 'ropectl[harness]'``) and nothing else.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from ropectl.evaluate.harness import HarnessConfig, run_harness
from ropectl.evaluate.setup import load_patched

pytestmark = pytest.mark.slow

QUESTIONS = [
    {"q": "def add(a, b):\n    return", "choices": ["a + b", "import os", "class"], "a": 0},
    {"q": "for i in", "choices": ["range(10):", "else:", "return None"], "a": 0},
    {"q": "import", "choices": ["(self):", "os", "# TODO"], "a": 1},
    {"q": "class A(object", "choices": ["):", "==", "import sys"], "a": 0},
    {"q": "if x is not", "choices": ["while", "None:", "def"], "a": 1},
]


def test_accuracy_is_that_of_log_likelihoods(tmp_path: Path) -> None:
    data = tmp_path / "questions.jsonl"
    data.write_text("".join(json.dumps(question) + "\n" for question in QUESTIONS))
    task = {
        "task": "choices",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "{{q}}",
        "doc_to_choice": "{{choices}}",
        "doc_to_target": "a",
        "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
    }
    (tmp_path / "choices.yaml").write_text(json.dumps(task))
    config = HarnessConfig(method="ntk", factor=4, tasks=("choices",), include_path=str(tmp_path))
    found = run_harness(config)["results"]["choices"]["acc,none"]
    model, tokenizer = load_patched("builtin:tiny", "ntk:factor=4")
    right = 0
    for question in QUESTIONS:
        scores = []
        for choice in question["choices"]:
            prompt, whole = (tokenizer.encode(text) for text in (question["q"], f"{question['q']} {choice}"))
            with torch.no_grad():
                logprobs = model(torch.tensor([whole])).logits[0, :-1].log_softmax(-1)
            targets = torch.tensor(whole[1:])
            scores.append(float(logprobs.gather(-1, targets[:, None])[len(prompt) - 1 :].sum()))
        right += scores.index(max(scores)) == question["a"]
    assert found == pytest.approx(right / len(QUESTIONS)) and found > 0
