"""The models, methods and lengths of a comparison, and what to say about them beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ropectl.compare.differences import check_against
from ropectl.compare.passkey_prompts import PasskeyPrompts
from ropectl.data.tokens import DocumentSet
from ropectl.errors import ConfigError
from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.scored_text import few_units_notes, text_notes
from ropectl.evaluate.setup import Setup, default_lengths
from ropectl.evaluate.shared_config import PASSKEYS
from ropectl.hf.model_settings import CHECKPOINT, SCALING
from ropectl.records import PlannedModel
from ropectl.reporter import Reporter
from ropectl.rope.method import ScalingMethod, short_spec
from ropectl.rope.methods.none import NoScaling
from ropectl.rope.notes import method_notes
from ropectl.rope.registry import all_methods, check_distinct, parse_spec, takes_factor

#: The extension factor where none is asked for.
DEFAULT_FACTOR = 4.0


@dataclass(frozen=True)
class ComparedModel:
    """A model of the comparison and its methods, checked as far as that needs no weights.

    Attributes:
        setup: The model.
        methods: The methods that it is measured under, in order.
        documents: The text in its tokens.
        same_tokens: Whether those are the first model's, so that losses can be compared token by token.
    """

    setup: Setup
    methods: Sequence[ScalingMethod]
    documents: DocumentSet
    same_tokens: bool = True

    @property
    def name(self) -> str:
        """The model, as the user wrote it."""
        return self.setup.config.model

    @property
    def planned(self) -> PlannedModel:
        """The model and its methods, as records name them."""
        return PlannedModel(self.name, self.setup.geometry, self.same_tokens, list(map(str, self.methods)))


@dataclass(frozen=True)
class Plan:
    """A comparison, checked as far as that needs no weights.

    Attributes:
        config: The settings.
        models: The models; all are judged against the first one, unscaled.
        lengths: Context lengths [tokens].
        target_length: The context that the comparison is about [tokens].
    """

    config: CompareConfig
    models: Sequence[ComparedModel]
    lengths: list[int]
    target_length: int

    @property
    def base(self) -> ComparedModel:
        """The first model."""
        return self.models[0]


def make_plan(config: CompareConfig, reporter: Reporter) -> Plan:
    """Returns what is compared, having made every check that needs no weights.

    Args:
        config: The settings.
        reporter: Receives notes.

    Raises:
        RopectlError: If the request cannot work.
    """
    if config.factors and (config.factor is not None or config.target_length is not None):
        raise ConfigError(
            f"factors = {', '.join(f'{factor:g}' for factor in config.factors)} contradict a single factor or target-length.",
            "Give only the factors: --factor 2 --factor 4",
        )
    if config.min_accuracy is not None and not config.passkey:
        raise ConfigError(
            "--min-accuracy is a limit for passkeys, and --no-passkey measures none.", "Leave out one of them."
        )
    if not config.passkey and (idle := [f"{name} = {getattr(config, name)}" for name in PASSKEYS.changed(config)]):
        reporter.note(f"--no-passkey: {' and '.join(idle)} {'has' if len(idle) == 1 else 'have'} no effect.")
    if not config.all_factors and config.target_length is None and not config.methods:
        config = config.model_copy(update={"factor": DEFAULT_FACTOR})
    setup = Setup.of(config)
    methods, notes = choose_methods(setup, config)
    check_against(config, methods)
    others = [_other(config, name) for name in config.others]
    setups = [setup, *others]
    shortest = max(PasskeyPrompts.of(each)[0].min_length for each in setups) if config.passkey else 2
    lengths, more_notes = choose_lengths(setup, config, methods, shortest)
    documents = setup.documents(lengths)
    more_notes += [*few_units_notes(documents, config.text), *text_notes(documents, lengths, config)]
    more_notes += setup.window_notes(lengths)
    for note in (*notes, *more_notes, *setup.attention_notes(lengths)):
        reporter.note(note)
    models = [ComparedModel(setup, methods, documents)]
    for other in others:
        models.append(_further_model(other, lengths, documents, reporter))
    return Plan(config, models, lengths, comparison_target(setup, config, methods))


def _other(config: CompareConfig, name: str) -> Setup:
    if name == config.model or config.others.count(name) > 1:
        raise ConfigError(f"{name} is named twice.", "Name every model once; the first is compared under all methods.")
    only_for_the_first = {**CHECKPOINT.defaults(CompareConfig), **SCALING.defaults(CompareConfig)}
    return Setup.of(config.model_copy(update={**only_for_the_first, "model": name}))


def _further_model(setup: Setup, lengths: list[int], documents: DocumentSet, reporter: Reporter) -> ComparedModel:
    own = setup.documents(lengths)
    same = own.fingerprint() == documents.fingerprint()
    name = setup.config.model
    notes = [*setup.source.rope.notes, *setup.window_notes(lengths)]
    if not same:
        apart = "" if own.split is None else ", though its windows are cut at other places"
        notes.append(
            f"{name} splits the text into other tokens: its perplexities are not comparable with the first model's, its bits "
            f"per byte are{apart}; 'models' and the change from the unscaled model are not judged."
        )
    for note in notes:
        reporter.note(note if name in note else f"{name}: {note}")
    return ComparedModel(setup, [setup.method(None)], own, same)


def choose_methods(setup: Setup, config: CompareConfig) -> tuple[list[ScalingMethod], list[str]]:
    """Returns the methods to compare, each once and the unscaled baseline first, and notes about them."""
    notes = setup.notes
    setups = [replace(setup, factor=factor) for factor in config.all_factors] or [setup]
    check_distinct(config.methods, [_methods(spec, setup, setups)[0] for spec in config.methods])
    chosen = [method for spec in config.methods for method in _methods(spec, setup, setups)]
    existing = setup.source.rope.method
    if not config.methods and existing.name != "none" and not config.replace:
        notes.append(
            f"{setup.source.name} is already scaled: {existing.label} is compared with no scaling. "
            "To compare every method in its place: --replace."
        )
    elif not config.methods:
        for name, kind in all_methods().items():
            factor = setups[0].factor or DEFAULT_FACTOR
            missing = kind.missing(kind.fill_factor({}, factor, setup.geometry))
            if missing:
                notes.append(
                    f"{name} is not compared: it needs {', '.join(missing)}. To include it: -m {name}:{missing[0]}=..."
                )
            else:
                chosen.extend(each.method(name) for each in setups)
    notes += _idle_factor_note(setups[0], config)
    methods = list(dict.fromkeys([NoScaling(), existing, *chosen]))
    for method in methods:
        notes.extend(method_notes(method, setup.geometry, seq_len=setup.trained_length))
    return methods, notes


def _idle_factor_note(setup: Setup, config: CompareConfig) -> list[str]:
    """Returns a note on methods that were asked for and take no factor; the baseline is one only where it is alone."""
    if setup.factor is None:
        return []
    idle = [spec for spec in config.methods if not takes_factor(spec, setup.factor, setup.geometry)]
    if len(idle) < len(config.methods):
        idle = [spec for spec in idle if spec != NoScaling.name]
    if not idle:
        return []
    named = ", ".join(map(short_spec, idle))
    return [
        f"{named}: no extension factor is taken. --factor and --target-length only decide the lengths, and the context that "
        "the verdict is about."
    ]


def _methods(spec: str, setup: Setup, setups: Sequence[Setup]) -> list[ScalingMethod]:
    """Returns the method of a spec at each factor; just one if the spec names its own factor."""
    is_complete = "factor" in parse_spec(spec)[1] and len(setups) > 1
    return [each.method(spec) for each in ([setup] if is_complete else setups)]


def comparison_target(setup: Setup, config: CompareConfig, methods: Sequence[ScalingMethod]) -> int:
    """Returns the context that the comparison is about: what was asked for, else the largest factor's [tokens]."""
    factors = [float(method.factor) for method in methods if hasattr(method, "factor")]
    factor = setup.factor or max((*factors, *config.all_factors), default=DEFAULT_FACTOR)
    return config.target_length or setup.geometry.target_length(factor)


def choose_lengths(
    setup: Setup, config: CompareConfig, methods: Sequence[ScalingMethod], shortest: int
) -> tuple[list[int], list[str]]:
    """Returns the lengths to compare at, which include the trained one, and notes about them.

    Args:
        setup: The model.
        config: The settings.
        methods: The methods; their largest factor is the target where none is named.
        shortest: No length may be below this [tokens].

    Raises:
        ConfigError: If a length is below ``shortest``.
    """
    trained = setup.trained_length
    if not config.lengths:
        target = comparison_target(setup, config, methods)
        lengths = [length for length in default_lengths(trained, target) if length >= min(shortest, trained)]
    else:
        lengths = sorted({*config.lengths, trained})
    if lengths[0] < shortest:
        raise ConfigError(
            f"length = {lengths[0]} tokens is too short for a passkey prompt, which takes {shortest} with this tokenizer.",
            f"Use lengths of at least {shortest}, or --no-passkey.",
        )
    if config.lengths and trained not in config.lengths:
        return lengths, [f"The trained length {trained} is measured too: verdicts are made against it."]
    return lengths, []
