"""Kind 2: what a config says that cannot be meant."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fuzz.case import Case, Expected, Step, changed_json, file
from fuzz.templates import CONFIG, TRAINED, Template, reading

PATH = "model/config.json"
PAIRS = 8
_SIZES = (
    *("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size", "vocab_size"),
    *("num_hidden_layers", "max_position_embeddings"),
)
_NO_SIZES = (-1, 0, "64", 1.5, True, 10**30, [64], {"a": 1}, float("nan"), float("inf"), "")
_NO_NUMBERS = (-1, 0, "10000", True, float("nan"), float("inf"), 10**400, [1], {}, "")
_WIDTHS = ("hidden_size", "num_attention_heads", "head_dim")  #: Of which the rotated dimension is made.
_ONES = [1.0] * PAIRS

_YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": TRAINED}
#: Without effect, or with one that is said.
_NAMED = ("yarn with factor None", "yarn with mscale = -1", "yarn with mscale_all_dim = -1")

_LLAMA3 = {**_YARN, "rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 4.0}
_LONG = {**_YARN, "rope_type": "longrope", "short_factor": _ONES, "long_factor": _ONES}
_LINEAR = {**_YARN, "rope_type": "linear"}
_DYNAMIC = {"rope_type": "dynamic", "factor": 4.0}

#: Keys that the block of another type has.
_FOREIGN: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    (_LINEAR, {"beta_fast": 32.0}),
    (_LINEAR, {"beta_slow": 1.0}),
    (_LINEAR, {"long_factor": _ONES}),
    (_LINEAR, {"attention_factor": 1.2}),
    (_YARN, {"low_freq_factor": 1.0}),
    (_YARN, {"high_freq_factor": 4.0}),
    (_YARN, {"short_factor": _ONES}),
    (_LLAMA3, {"beta_fast": 32.0}),
    (_LLAMA3, {"mscale": 1.0}),
    (_DYNAMIC, {"beta_slow": 1.0}),
    (_DYNAMIC, {"long_factor": _ONES}),
    (_LONG, {"beta_fast": 32.0}),
    ({"rope_type": "default"}, {"factor": 4.0}),
    ({"rope_type": "default"}, {"beta_fast": 32.0}),
    (_YARN, {"factr": 8.0}),
)


def cases() -> Iterator[Case]:
    """Yields the cases of this kind, for every command that reads a config."""
    for each in reading("config"):
        plain = each.without_method()
        for key, value, name in _top():
            said = f"{key}|rotary_dim" if key in _WIDTHS else f"{key}|{key.replace('_', ' ')}"
            yield each.case(2, f"{key} = {name}", _set(**{key: value}), mentions=(said,))
        for wrong, changes, mentions in _relations():
            yield each.case(2, wrong, _set(**changes), mentions=mentions)
        for dialect in ("rope_scaling", "rope_parameters"):
            for wrong, block, mentions in _blocks():
                named = wrong in _NAMED
                if not (named and each.command in ("methods", "verify-runtime")):  # which say it, and end otherwise
                    expected = Expected.told if named else Expected.refused
                    yield plain.case(
                        2, f"{dialect}: {wrong}", _in_dialect(dialect, block), expected=expected, mentions=mentions
                    )
            yield from _foreign(plain, dialect)
        for key in ("rope_theta", "max_position_embeddings", "hidden_size", "rope_scaling"):
            yield plain.case(2, f"{key} stands twice in config.json", _twice(key), mentions=(key,))


def _set(**values: Any) -> Step:
    said = ", ".join(f"{key}={str(value)[:60]}" for key, value in values.items())
    return changed_json(PATH, lambda config: config.update(values), said)


def _in_dialect(dialect: str, block: Any) -> Step:
    """A config with a scaling block in one of its two dialects, and the length that belongs to it."""

    def change(config: dict[str, Any]) -> None:
        if isinstance(block, dict) and block.get("rope_type") not in ("default", "dynamic"):
            config["max_position_embeddings"] = 4 * TRAINED
        if dialect == "rope_parameters" and isinstance(block, dict):
            config[dialect] = {"rope_theta": config.pop("rope_theta"), **block}
        else:
            config[dialect] = block

    return changed_json(PATH, change, f"{dialect}={block!r:.200}")


def _twice(key: str) -> Step:
    """A config that says a key twice, with different values."""
    config = {**CONFIG, "rope_scaling": _LINEAR}
    other = {**_LINEAR, "factor": 2.0} if key == "rope_scaling" else 2 * config[key]  # type: ignore[operator]
    text = json.dumps(config)
    return file(PATH, f"{text[:-1]}, {json.dumps(key)}: {json.dumps(other)}}}", f"{PATH}: {key} twice")


def _top() -> Iterator[tuple[str, Any, str]]:
    """Yields impossible values of keys outside the scaling block."""
    for key in _SIZES:
        for value in _NO_SIZES:
            yield key, value, f"{value!r:.40}"
    for value in (2**31, 2**63, 10**400):
        yield "max_position_embeddings", value, f"{value!r:.40}"
    for value in _NO_NUMBERS:
        yield "rope_theta", value, f"{value!r:.40}"
    for value in (-0.5, 0, 2.0, "x", True, float("nan")):
        yield "partial_rotary_factor", value, f"{value!r:.40}"
    for value in ("frobnicate", "", 5, ["llama"], None):
        yield "model_type", value, repr(value)
    for key in ("rope_scaling", "rope_parameters"):
        for value in ([1], "yarn", 5, True):
            yield key, value, repr(value)


def _relations() -> Iterator[tuple[str, dict[str, Any], tuple[str, ...]]]:
    """Yields values that are possible, but not together."""
    yield "heads that do not divide hidden_size", {"hidden_size": 66}, ("hidden_size",)
    yield "3 heads for a hidden_size of 64", {"num_attention_heads": 3, "num_key_value_heads": 3}, ("heads|rotary_dim",)
    yield "kv heads that do not divide heads", {"num_key_value_heads": 3}, ("num_key_value_heads",)
    yield "more kv heads than heads", {"num_key_value_heads": 8}, ("num_key_value_heads",)
    yield "an odd head_dim", {"head_dim": 15}, ("head_dim|rotary_dim",)
    unknown = {"model_type": "frobnicate", "architectures": ["FrobnicateForCausalLM"], "rope_scaling": _YARN}
    yield "an unknown model type with a scaling", unknown, ("frobnicate",)
    yield "two scalings", {"rope_scaling": _LINEAR, "rope_parameters": {**_YARN, "rope_theta": 1e4}}, ("contradict",)
    vl = {"model_type": "qwen2_vl", "architectures": ["Qwen2VLForConditionalGeneration"]}
    for section in ([1, 1, 1], [8, 8, 8], [], [2, 3], [-2, 5, 5], "8"):
        block = {"type": "mrope", "mrope_section": section}
        yield f"mrope_section = {section}, of {PAIRS} pairs", {**vl, "rope_scaling": block}, ("mrope_section",)


def _blocks() -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    """Yields impossible scaling blocks."""
    for base in (_YARN, _LINEAR, _DYNAMIC, _LLAMA3):
        kind = base["rope_type"]
        for value in (None, 0, -2, 0.5, "4.0", True, [4], float("nan"), float("inf"), 10**400):
            yield f"{kind} with factor {value!r:.20}", {**base, "factor": value}, ("factor",)
        lacking = {key: value for key, value in base.items() if key != "factor"}
        if kind != "yarn":  # whose factor is then the ratio of the lengths, for every runtime
            yield f"{kind} without factor", lacking, ("factor",)
    for value in ("", "yarm", 5, ["yarn"], {}, True, " yarn", "YARN"):
        yield f"rope_type = {value!r}", {**_YARN, "rope_type": value}, ("rope_type|type",)
    yield "rope_type and type contradict", {**_YARN, "type": "linear"}, ("type",)
    for key in ("beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim"):
        for value in ("32", -1, True, float("nan"), [1]):
            yield f"yarn with {key} = {value!r}", {**_YARN, key: value}, (key,)
    yield "yarn with betas that cross", {**_YARN, "beta_fast": 1.0, "beta_slow": 32.0}, ("beta",)
    yield "yarn with truncate = 'false'", {**_YARN, "truncate": "false"}, ("truncate",)
    for value in (0, -5, "64", 1.5, True, 10**30, 2**63):
        changed = {**_YARN, "original_max_position_embeddings": value}
        yield f"yarn, trained length {value!r:.20}", changed, ("original_max_position_embeddings",)
    for key in ("low_freq_factor", "high_freq_factor"):
        for value in (None, 0, -1, "1", True):
            yield f"llama3 with {key} = {value!r}", {**_LLAMA3, key: value}, (key,)
    yield "llama3 with factors that cross", {**_LLAMA3, "low_freq_factor": 8.0}, ("freq_factor",)
    for key in ("short_factor", "long_factor"):
        for value in (
            *([], [1.0], _ONES * 2, [0.0] * PAIRS, [-1.0] * PAIRS, ["1"] * PAIRS, [None] * PAIRS, [[1.0]] * PAIRS),
            *([float("nan")] * PAIRS, {}, "1", 1.0, None, [10**400] * PAIRS, [True] * PAIRS),
        ):
            yield f"longrope with {key} = {value!r:.30}", {**_LONG, key: value}, (key,)


def _foreign(each: Template, dialect: str) -> Iterator[Case]:
    """Yields blocks with keys that their type does not read: a warning, and an error with --strict."""
    for block, more in _FOREIGN:
        step, (key,) = _in_dialect(dialect, {**block, **more}), more
        wrong = f"{dialect} of type {block['rope_type']} with {key}"
        yield each.case(2, f"{wrong}, --strict", step, more=("--strict",), mentions=(key,))
        if each.command == "inspect":
            yield each.case(2, wrong, step, expected=Expected.noted, mentions=(key,))
