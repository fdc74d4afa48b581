"""What can be set for ``eval-tasks``."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from ropectl.evaluate.config import DEFAULT_TEXT, ModelConfig


class TasksConfig(ModelConfig):
    """``eval-tasks``."""

    method: str | None = Field(None, description="method spec; the checkpoint's own scaling by default")
    tasks: tuple[str, ...] = Field((), description="task specs; every task by default")
    lengths: tuple[int, ...] = Field((), description="lengths of prompt and answer [tokens]")
    text: str = Field(DEFAULT_TEXT, description="what facts are hidden in, by tasks with haystack=text")
    depths: int = Field(5, ge=1, description="depths of the asked fact, evenly spaced over [0, 1]")
    trials: int = Field(5, ge=1, description="prompts per length and depth; tasks without depths take trials x depths")
    seed: int = Field(0, description="chooses everything that is drawn")
    chat: bool = Field(False, description="ask in the turns of the tokenizer's chat template")
    used_score: float = Field(0.9, gt=0, le=1, description="score that counts as used")
    min_score: float | None = Field(
        None, ge=0, le=1, description="fail where the average over the tasks is below this at a measured length"
    )

    @field_validator("tasks", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        """A single task in a YAML file needs no list."""
        return (value,) if isinstance(value, str) else value

    def depth_values(self) -> list[float]:
        """Returns the depths, 0 and 1 included; a single one is the middle."""
        return [0.5] if self.depths == 1 else [index / (self.depths - 1) for index in range(self.depths)]
