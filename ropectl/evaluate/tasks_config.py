"""The settings of ``eval-tasks``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ropectl.evaluate.shared_config import (
    DEFAULT_TEXT,
    MAX_TRIALS,
    Chat,
    Depths,
    MeasuredLengths,
    ModelConfig,
    Seed,
    Seeds,
    Text,
)
from ropectl.hf.model_settings import LOADING, MethodSpec
from ropectl.option import Option, Panel
from ropectl.setting_types import Texts


class TasksConfig(ModelConfig):
    """The settings of ``eval-tasks``."""

    strict: Annotated[
        bool,
        Field(
            description="treat warnings about the checkpoint's config, and a text that prompts have to repeat, as errors"
        ),
        Option(Panel.model),
        LOADING,
    ] = False
    method: MethodSpec = None
    tasks: Annotated[
        Texts,
        Field(description="task spec NAME[:KEY=VALUE,...], repeatable; see --list"),
        Option(Panel.measurement, "SPEC", ("--task",), "every task", "tasks"),
    ] = ()
    lengths: MeasuredLengths = ()
    text: Text = DEFAULT_TEXT
    depths: Depths = 5
    trials: Annotated[
        int,
        Field(
            ge=1, le=MAX_TRIALS, description="prompts per length and depth; tasks without depths take trials x depths"
        ),
        Option(Panel.measurement, "N"),
    ] = 8
    seed: Seed = 0
    seeds: Seeds = 1
    chat: Chat = False
    used_score: Annotated[
        float, Field(gt=0, le=1, description="score that counts as used"), Option(Panel.measurement, "A")
    ] = 0.9
    min_score: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="exit with code 3 where the average over the tasks is below this at a measured length",
        ),
        Option(Panel.measurement, "A"),
    ] = None
