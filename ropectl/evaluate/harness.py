"""lm-evaluation-harness on a model under a scaling method: the exact calls, as a script or made at once.

EleutherAI's harness (https://github.com/EleutherAI/lm-evaluation-harness) takes a model that is in memory, so no
checkpoint has to be written to see what a scaling method does to ordinary tasks.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field

from ropectl.errors import ConfigError
from ropectl.evaluate.request import asked_method
from ropectl.evaluate.setup import Setup, load_patched
from ropectl.evaluate.shared_config import MAX_BATCH, ModelConfig
from ropectl.extras import check_package
from ropectl.hf.model.loading import ran_on
from ropectl.hf.model_settings import CHECKPOINT, EXTENT, LOADING, PERMISSION, SCALING, MethodSpec
from ropectl.hf.run_names import BosPolicy
from ropectl.option import Option, Panel
from ropectl.records import HarnessManifest, HarnessRecord, to_json
from ropectl.reporter import Reporter
from ropectl.runs import command_line, package_versions
from ropectl.setting_types import Texts, Tokens


class HarnessConfig(ModelConfig):
    """``harness``."""

    bos: Annotated[BosPolicy, Field(description="has no effect: the harness writes the tokens")] = "auto"
    prefill_chunk: Annotated[Tokens | None, Field(description="has no effect: the harness calls the model")] = None
    method: MethodSpec = None
    tasks: Annotated[
        Texts,
        Field(description="task of lm-evaluation-harness, repeatable"),
        Option(Panel.harness, "NAME", ("--task",)),
    ] = ()
    length: Annotated[
        Tokens | None,
        Field(ge=2, description="longest context [tokens]"),
        Option(Panel.harness, "N", default="what the method is made for"),
    ] = None
    num_fewshot: Annotated[
        int | None, Field(ge=0, description="examples before each question"), Option(Panel.harness, "K")
    ] = None
    batch_size: Annotated[
        int, Field(ge=1, le=MAX_BATCH, description="requests per forward pass"), Option(Panel.harness, "N")
    ] = 1
    limit: Annotated[
        int | None, Field(ge=1, description="most examples per task, to try it out"), Option(Panel.harness, "N")
    ] = None
    include_path: Annotated[
        str | None, Field(description="folder with task files of your own"), Option(Panel.harness, "FOLDER")
    ] = None


def harness_calls(config: HarnessConfig, reporter: Reporter | None = None) -> dict[str, dict[str, Any]]:
    """Returns the arguments of the three calls that a run consists of, checked as far as that needs no weights.

    Args:
        config: The settings.
        reporter: Receives notes.

    Raises:
        RopectlError: If the request cannot work.
    """
    if not config.tasks:
        raise ConfigError("No task is named.", "Type for example: --task hellaswag --task arc_easy")
    setup = Setup.of(config)
    method, notes = asked_method(setup, config.method, config.length is not None)
    for note in notes:
        (reporter or Reporter()).note(note)
    length = config.length or setup.target(method)
    named = {"model", "method", *EXTENT.names(HarnessConfig)}  # the method's spec holds its factor
    changed = [name for group in (SCALING, CHECKPOINT, LOADING, PERMISSION) for name in group.changed(config)]
    return {
        "load_patched": {
            "model": config.model,
            "method": None if config.method is None else str(method),
            **({"seq_len": length} if method.depends_on_seq_len else {}),
            **{name: getattr(config, name) for name in changed if name not in named},
        },
        "HFLM": {"max_length": length, "batch_size": config.batch_size},
        "simple_evaluate": {
            "tasks": list(config.tasks),
            **({"num_fewshot": config.num_fewshot} if config.num_fewshot is not None else {}),
            **({"limit": config.limit} if config.limit is not None else {}),
            **({"include_path": config.include_path} if config.include_path is not None else {}),
        },
    }


def harness_script(config: HarnessConfig, reporter: Reporter | None = None) -> str:
    """Returns a Python script that makes the calls, for an environment that has lm-evaluation-harness.

    Args:
        config: The settings.
        reporter: Receives notes.

    Raises:
        RopectlError: If the request cannot work.
    """
    calls = harness_calls(config, reporter)
    evaluate = dict(calls["simple_evaluate"])
    path = evaluate.pop("include_path", None)
    manager = f", task_manager=TaskManager(include_path={path!r})" if path else ""
    return "\n".join(
        (
            "import lm_eval",
            "from lm_eval.models.huggingface import HFLM",
            *(["from lm_eval.tasks import TaskManager"] if path else []),
            "from lm_eval.utils import make_table",
            "",
            "import ropectl",
            "",
            f"model, tokenizer = ropectl.load_patched({_arguments(calls['load_patched'])})",
            f"lm = HFLM(pretrained=model, tokenizer=tokenizer, {_arguments(calls['HFLM'])})",
            f"results = lm_eval.simple_evaluate(model=lm, {_arguments(evaluate)}{manager})",
            "print(make_table(results))",
        )
    )


def run_harness(config: HarnessConfig, reporter: Reporter | None = None) -> dict[str, Any]:
    """Makes the calls, and returns the harness's results with the calls that gave them.

    Args:
        config: The settings.
        reporter: Receives notes.

    Raises:
        ConfigError: If lm-evaluation-harness is not installed.
        RopectlError: If the request cannot work.
    """
    calls = harness_calls(config, reporter)
    check_package("lm_eval", "--run")
    import lm_eval
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    evaluate = dict(calls["simple_evaluate"])
    path = evaluate.pop("include_path", None)
    if path:
        evaluate["task_manager"] = TaskManager(include_path=path)
    model, tokenizer = load_patched(**calls["load_patched"])
    lm = HFLM(pretrained=model, tokenizer=tokenizer, **calls["HFLM"])
    results = lm_eval.simple_evaluate(model=lm, **evaluate)
    kept = ("results", "groups", "versions", "n-shot", "n-samples", "higher_is_better")
    told = {name: results[name] for name in kept if name in (results or {})}
    found = json.loads(json.dumps(told, default=str))  # the results hold numpy numbers and functions
    record = HarnessRecord(
        model=config.model,
        method=calls["load_patched"]["method"],
        calls=calls,
        results=found.get("results", {}),
        groups=found.get("groups"),
        versions=found.get("versions"),
        n_shot=found.get("n-shot"),
        n_samples=found.get("n-samples"),
        higher_is_better=found.get("higher_is_better"),
        manifest=HarnessManifest(
            **vars(ran_on(model)), command=command_line(), versions=package_versions(("lm_eval",))
        ),
    )
    return to_json(record)


def _arguments(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())
