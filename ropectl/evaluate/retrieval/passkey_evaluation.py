"""Passkey retrieval of one model under one method: settings in, record out.

Whatever runs models is imported where it is first needed, as in :mod:`ropectl.evaluate.perplexity.evaluation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ropectl.errors import ConfigError
from ropectl.evaluate.config import PasskeyConfig
from ropectl.evaluate.cost import ForwardCost
from ropectl.evaluate.judging.verdict_sentences import doubt, open_sentences
from ropectl.evaluate.judging.verdicts import Reached, longest_without_a_miss, reached, uses_verdicts
from ropectl.evaluate.request import manifest, method_and_lengths
from ropectl.evaluate.retrieval.passkey_cells import by_length, passkey_cells, scored_length
from ropectl.evaluate.retrieval.prompts import (
    GridPoint,
    Prompt,
    build_prompts,
    cost_of,
    count_tokens,
    default_positions,
    depth_grid,
    early_position_note,
    fingerprint,
    position_grid,
)
from ropectl.evaluate.setup import Setup
from ropectl.evaluate.shared_config import USES_ACCURACY, evenly_spaced
from ropectl.lengths import lengths_text
from ropectl.records import PasskeyLength, PasskeyManifest, PasskeyRecord, UsesReach, to_json
from ropectl.reporter import Reporter
from ropectl.rope.method import ScalingMethod
from ropectl.tasks.chat import chat_turn, check_bos
from ropectl.tasks.kinds.passkey import Passkey
from ropectl.tasks.prompt_builder import PromptBuilder

#: Accuracies of ``k_max``: Position Interpolation's, and a more reliable one.
K_MAX = (0.2, 0.8)

#: Tokens that an example shows around the needle, and after the instruction.
_EXAMPLE_MARGIN = 16


@dataclass(frozen=True)
class _Plan:
    """Everything that is decided before weights load; ``prompts`` are in the order of lengths and depths."""

    config: PasskeyConfig
    setup: Setup
    method: ScalingMethod
    task: Passkey
    builder: PromptBuilder
    prompts: list[Prompt]
    notes: list[str]

    @classmethod
    def of(cls, config: PasskeyConfig) -> _Plan:
        _check(config)
        setup = Setup.of(config)
        method, lengths, notes = method_and_lengths(setup, config.method, config.lengths)
        chat = chat_turn(setup.tokenizer) if config.chat else None
        builder = PromptBuilder(setup.tokenizer, setup.bos_token_id, config.seed, chat=chat)
        task = Passkey(distractors=config.distractors)
        points = _points(config, task, builder, lengths, notes)
        prompts = build_prompts(task, builder, sorted(points), config.trials, config.seeds)
        if prompts[0].trial.references:
            notes.append(
                "This tokenizer gives the answer no tokens of its own after the question: answers are generated and read."
            )
        return cls(config, setup, method, task, builder, prompts, notes)


def evaluate_passkey(config: PasskeyConfig | None = None, reporter: Reporter | None = None) -> dict[str, Any]:
    """Returns passkey retrieval over lengths and needle positions of one model under one method.

    Args:
        config: What to measure; by default ``builtin:tiny`` as it is.
        reporter: Receives progress and notes.

    Returns:
        A :class:`~ropectl.records.PasskeyRecord` as plain JSON values.

    Raises:
        RopectlError: If the request cannot work; found before weights load.
    """
    config, reporter = config or PasskeyConfig(), reporter or Reporter()
    plan = _Plan.of(config)
    num_tokens = count_tokens(plan.method, plan.prompts)
    for note in plan.notes:
        reporter.note(note)
    from ropectl.evaluate.retrieval.measure import answer_passkeys

    setup, method = plan.setup, plan.method
    model = setup.model
    forward = ForwardCost.of(setup.source.config)
    cost = cost_of(method, plan.prompts, forward)
    reporter.start("measuring", num_tokens, cost=cost)
    reporter.cell(method.label, "passkey", cost)
    answered = answer_passkeys(
        model, method, setup.geometry, plan.prompts, plan.builder, layers=setup.source.rope.layer_type,
        prefill_chunk=config.prefill_chunk, generate=config.generate,
        progress=forward.reported(reporter.advance),
    )  # fmt: skip
    cells = passkey_cells(answered, plan.builder, setup.source.rope.capacity(method), config.generate)
    return to_json(_record(plan, by_length(cells), num_tokens))


def _record(plan: _Plan, results: Sequence[PasskeyLength], num_tokens: int) -> PasskeyRecord:
    config, prompts = plan.config, plan.prompts
    uses = reached(uses_verdicts(map(scored_length, results), USES_ACCURACY), plan.setup.trained_length)
    found = [(result.length, result.accuracy) for result in results]
    is_compared = any(result.num_differing is not None for result in results)
    middle = len(prompts) // config.trials // 2 * config.trials
    return PasskeyRecord(
        model=config.model,
        method=str(plan.method),
        geometry=plan.setup.geometry,
        grid=config.grid,
        prompt_format=plan.builder.prompt_format,
        answers="text" if config.generate or prompts[0].trial.references else "tokens",
        lengths=list(results),
        cells=[cell for result in results for cell in result.depths],
        chance=Passkey().chance,
        k_max={str(accuracy): longest_without_a_miss(found, accuracy) for accuracy in K_MAX},
        reach=UsesReach(*uses),
        verdict=verdict(results, uses, plan.setup.trained_length),
        num_differing=sum(result.num_differing or 0 for result in results) if is_compared else None,
        prompt_example=shortened(plan.task, plan.builder, prompts[middle]),
        manifest=PasskeyManifest(
            **{**manifest(plan.setup), "bos_token_id": _first_special(plan)},
            prompts_sha256=fingerprint(prompt.trial.input_ids for prompt in prompts),
            tokens_computed=num_tokens,
            prompt_tokens=sum(prompt.point.length for prompt in prompts),
        ),
    )


def verdict(results: Sequence[PasskeyLength], uses: Reached, trained_length: int) -> str:
    """Returns the verdict on use, in a sentence or two.

    Args:
        results: Retrieval by length, ascending.
        uses: How far it goes.
        trained_length: L [tokens].
    """
    wanted, certain = f"{USES_ACCURACY:.0%}", uses.certain or 0
    by_length = {result.length: result for result in results}
    failing = next((by_length[one.length] for one in uses.at if one.length > certain and one.outcome == "no"), None)
    rest = f"{failing.accuracy:.0%} of the keys are found at {failing.length} tokens" if failing else ""
    not_yes = [one.length for one in uses.at if one.length < certain and one.outcome != "yes"]
    found_at = [one.length for one in uses.at if max(not_yes, default=0) < one.length <= certain]
    open_ones = " ".join(open_sentences("Use", uses, "prompts", trained_length))
    if certain:
        longest = ", the longest that was measured" if certain == max(by_length) else ""
        ending = f"; {rest}." if rest else "."
        first = f"Uses {certain} tokens{longest}: at least {wanted} of the keys are found at {lengths_text(found_at)} tokens{ending}"
    elif open_ones:
        first = f"Use is not resolved at any evaluated length ({wanted} wanted)" + (f"; {rest}." if rest else ".")
    else:
        first = f"Uses no evaluated length: {rest}, {wanted} wanted."
    return " ".join(filter(None, [first, open_ones]))


def failed_gate(record: dict[str, Any], min_accuracy: float | None) -> list[str]:
    """Returns a line for each length whose accuracy is below the wanted one; none without one."""
    if min_accuracy is None:
        return []
    return [
        f"{entry['length']} tokens: {entry['accuracy']:.1%} of {entry['trials']} keys found, "
        f"below --min-accuracy {min_accuracy:g}{doubt(entry, min_accuracy, '.1%')}."
        for entry in record["lengths"]
        if entry["accuracy"] < min_accuracy
    ]


def _check(config: PasskeyConfig) -> None:
    if config.needle_positions and config.grid != "position":
        raise ConfigError("--position is for another grid.", "Type: --grid position --position N")
    if config.grid == "position" and "depths" in config.model_fields_set:
        raise ConfigError(
            "--depths is not possible with --grid position: its needles are at fixed tokens.",
            "Name them instead, for example: --position 1k,2k",
        )
    if config.chat:
        check_bos(config.bos)


def _points(
    config: PasskeyConfig, task: Passkey, builder: PromptBuilder, lengths: Sequence[int], notes: list[str]
) -> list[GridPoint]:
    """Returns the grid that was asked for; adds to the notes."""
    if config.grid == "depth":
        return depth_grid(task, builder, lengths, evenly_spaced(config.depths))
    positions = sorted(set(config.needle_positions)) or default_positions(lengths)
    points = position_grid(task, builder, lengths, positions)
    notes += early_position_note(task, builder, lengths, positions)
    return points


def shortened(task: Passkey, builder: PromptBuilder, prompt: Prompt) -> str:
    """Returns the text of a prompt without its answer, shortened to the question and the place where it is hidden."""
    shape, margin, start = task.shape(builder), _EXAMPLE_MARGIN, prompt.position or 0
    ids = prompt.trial.input_ids[: prompt.trial.answer_start]
    shown = [
        (0, shape.head + margin),
        (start - margin, start + shape.sizes.facts[0] + margin),
        (len(ids) - shape.sizes.tail - margin, len(ids)),
    ]
    parts: list[list[int]] = []
    shown_to = 0
    for start, end in shown:
        if parts and start <= shown_to:
            parts[-1] += ids[shown_to:end]
        else:
            parts.append(ids[start:end])
        shown_to = max(shown_to, min(end, len(ids)))
    return " [...] ".join(map(builder.text, parts))


def _first_special(plan: _Plan) -> int | None:
    """Returns the beginning-of-sequence token that prompts begin with; None if they begin with another token."""
    bos: int | None = plan.setup.tokenizer.bos_token_id
    return bos if plan.prompts[0].trial.input_ids[0] == bos else None
