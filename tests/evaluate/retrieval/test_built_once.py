"""Building prompts takes time and tokenizer calls: whatever is measured, each prompt is built once."""

from __future__ import annotations

from typing import Any

import pytest

from ropectl.compare.run import compare_methods
from ropectl.evaluate.config import CompareConfig, PasskeyConfig
from ropectl.evaluate.retrieval.passkey_evaluation import evaluate_passkey
from ropectl.evaluate.retrieval.task_evaluation import evaluate_tasks
from ropectl.evaluate.tasks_config import TasksConfig
from ropectl.tasks.task import RetrievalTask

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.process]

Built = list[tuple[Any, ...]]


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Built:
    """The prompts that were built, as task, length, depth and number."""
    calls: Built = []
    original = RetrievalTask.build

    def build(self: RetrievalTask, builder: Any, *place: Any) -> Any:
        calls.append((str(self), *place))
        return original(self, builder, *place)

    monkeypatch.setattr(RetrievalTask, "build", build)
    return calls


@pytest.mark.parametrize("method", ["none", "dynamic-ntk"])
def test_by_eval_passkey(built: Built, method: str) -> None:
    record = evaluate_passkey(PasskeyConfig(method=method, lengths=(128, 256), depths=2, trials=3))
    assert len(built) == len(set(built)) == sum(cell["trials"] for cell in record["cells"]) == 12


def test_by_eval_tasks(built: Built) -> None:
    evaluate_tasks(TasksConfig(tasks=("passkey", "multi-value"), lengths=(384, 512), depths=2, trials=1))
    assert len(built) == len(set(built)) == 2 * 2 * 2


def test_by_a_comparison_for_all_methods(built: Built, tmp_path: Any) -> None:
    config = CompareConfig(methods=("pi:factor=2", "dynamic-ntk"), lengths=(512, 600), documents=1, depths=2, trials=1)
    compare_methods(config, tmp_path / "run")
    assert len(built) == len(set(built)) == 2 * 2
