"""Every row of the reference tables: attention factors, transformers versions, length keys, red lines."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ropectl.records import RuntimeReading
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from ropectl.runtimes.facts import config_facts, llama_config, patch_facts
from ropectl.runtimes.matrix import next_steps, read_all
from ropectl.runtimes.runtime import CheckpointFacts
from tests.runtimes.cases import GEOMETRY, KNOWN, LISTS, LLAMA3, TARGET, YARN, base_config, facts, scaled, v5_only
from tests.tolerances import EXACT

FORMULA = 0.1 * math.log(4) + 1
T4 = ("4.44", "4.48", "4.51", "4.53", "4.55", "4.57")


def readings(
    config: dict[str, Any], spec: str = "none", target: int = TARGET, **changes: Any
) -> dict[str, RuntimeReading]:
    """Readings by version for transformers, by name for the others (the newest of each)."""
    found = read_all(facts(config, spec, target, **changes))
    return {**{reading.runtime: reading for reading in found}, **{reading.version: reading for reading in found}}


def llama_cpp(entries: list[Any]) -> Any:
    """What a list with one entry for every runtime says of llama.cpp."""
    return next(entry for entry in entries if entry.runtime == "llama.cpp")


def codes(reading: RuntimeReading) -> set[str]:
    return {problem.code for problem in reading.problems}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        # | none given | 0.1 ln s + 1 | same | same | same |
        ({}, {"5.24": FORMULA, "0.32": FORMULA, "0.9": FORMULA, "sglang": FORMULA, "llama.cpp": FORMULA}),
        # | attention_factor | absolute | absolute (recent) | ignored | loader overwrites |
        ({"attention_factor": 1.0}, {"5.24": 1.0, "0.32": 1.0, "0.9": FORMULA, "sglang": FORMULA, "llama.cpp": FORMULA}),
        # | attn_factor | ignored | ignored (was a multiplier) | multiplier | as above |
        (
            {"attn_factor": 1 / FORMULA},
            {"5.24": FORMULA, "0.32": FORMULA, "0.9": 1.0, "sglang": 1.0, "llama.cpp": FORMULA},
        ),
        # | mscale and mscale_all_dim (both truthy) | ratio | ratio | ratio | ignored |
        (
            {"mscale": 1.0, "mscale_all_dim": 1.0},
            {"5.24": 1.0, "0.32": 1.0, "0.9": FORMULA, "sglang": 1.0, "llama.cpp": FORMULA, "4.48": FORMULA, "4.51": 1.0},
        ),
    ],
)  # fmt: skip
def test_who_honours_which_attention_factor(keys: dict[str, float], expected: dict[str, float]) -> None:
    found = readings(scaled("yarn", **YARN, **keys), "yarn")
    for name, factor in expected.items():
        assert found[name].attention_factor == pytest.approx(factor, rel=EXACT), name
        differs = abs(factor - FORMULA) > 1e-9
        assert any("attention" in code for code in codes(found[name])) == differs, name


def test_the_gguf_key_for_the_attention_factor_is_what_the_flags_set() -> None:
    """Only rope.scaling.attn_factor survives, as a multiplier of what the loader recomputes."""
    meant = patch_facts(base_config(), GEOMETRY, parse_method("yarn:attention_factor=1", 4.0, GEOMETRY), "./out")
    command = llama_cpp(next_steps(meant)).command
    assert command is not None
    value = float(command.split("llama.rope.scaling.attn_factor=float:")[1].split()[0])
    assert value * FORMULA == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize(
    ("version", "limit", "code"),
    [
        # | 4.44-4.48 | max_position_embeddings (the key in the dict is ignored) | given |
        ("4.44", 8192, "original-length-ignored"),
        ("4.48", 8192, "original-length-ignored"),
        ("4.48", 2048, None),
        # | 4.51 | original if present | overwritten by mpe/original |
        ("4.51", 8192, None),
        ("4.51", 2560, "factor-overwritten"),
        # | 4.57 | original or mpe | given |
        ("4.57", 2560, None),
        # | 5.0-5.24 | original, required; filled with mpe if missing | given |
        ("5.24", 2560, None),
    ],
)
def test_what_yarn_meant_in_each_version(version: str, limit: int, code: str | None) -> None:
    config = {**scaled("yarn", **YARN), "max_position_embeddings": limit}
    reading = readings(config, "yarn")[version]
    assert codes(reading) == ({code} if code else set())
    assert (reading.max_deviation or 0.0) > (0.05 if code else -1.0)


def test_a_missing_original_length_is_guessed_by_transformers_5() -> None:
    """Off by up to 92 % in one pair."""
    reading = readings(scaled("yarn", factor=4.0), "yarn")["5.24"]
    assert codes(reading) == {"original-length-guessed"} and (reading.max_deviation or 0) > 0.1


@pytest.mark.parametrize(
    ("config", "spec", "served"),
    [
        # | default | L' (vLLM/sglang cap serving at it) | - |
        (base_config(), "none", {"vllm": 2048, "sglang": 2048, "llama.cpp": 2048, "5.24": None}),
        # | linear | HF: free; vLLM/sglang: must be L (they multiply) | sglang: its presence switches multiplying off |
        (base_config(rope_scaling={"rope_type": "linear", "factor": 4.0}), "pi", {"vllm": 8192, "sglang": 8192, "0.9": 8192}),
        (scaled("linear", factor=4.0), "pi", {"vllm": 32768, "sglang": 32768, "0.9": 32768}),
        (scaled("linear", factor=4.0, original_max_position_embeddings=2048), "pi", {"vllm": 32768, "sglang": 8192}),
        # | dynamic | HF: L; vLLM/sglang multiply | HF warns, ignores |
        (base_config(rope_scaling={"rope_type": "dynamic", "factor": 2.0}), "dynamic-ntk", {"vllm": 4096, "sglang": 4096}),
        # | yarn | L' (older vLLM took original * factor) | L, required in 5.x |
        (scaled("yarn", **YARN), "yarn", {"vllm": 8192, "0.9": 8192, "sglang": 8192}),
        ({**scaled("yarn", **YARN), "max_position_embeddings": 2560}, "yarn", {"vllm": 2560, "0.9": 8192, "sglang": 2560}),
        # | llama3 | L' | L, required |
        (scaled("llama3", **LLAMA3), "llama3", {"vllm": 8192, "0.9": 8192, "sglang": 8192}),
        # | longrope | L' | dict key L (5.x), top-level attribute L (4.x; wins in 5.x, and is what vLLM serves) |
        (scaled("longrope", **LISTS, **YARN), "none", {"vllm": 8192, "sglang": 8192}),
        ({**scaled("longrope", **LISTS), "original_max_position_embeddings": 2048}, "none", {"vllm": 2048, "0.9": 8192}),
        # | proportional | L' | - |
        (scaled("proportional", factor=1.0, partial_rotary_factor=0.75), "none", {"vllm": 8192, "sglang": 8192}),
    ],
)  # fmt: skip
def test_meaning_of_the_length_keys(config: dict[str, Any], spec: str, served: dict[str, int | None]) -> None:
    found = readings(config, spec)
    for name, length in served.items():
        assert found[name].usable_length == length, name
        if length is not None:
            assert ("length-multiplied" in codes(found[name])) == (length > TARGET), name
            assert ("length-capped" in codes(found[name])) == (length < TARGET), name


def test_a_float_length_stops_the_strict_configs() -> None:
    """An export must write an int."""
    found = readings({**scaled("yarn", **YARN), "max_position_embeddings": 8192.0}, "yarn")
    assert not any(found[name].loads for name in ("5.24", "0.32", "sglang")) and found["4.57"].loads


def test_the_tokenizer_caps_what_transformers_is_given() -> None:
    found = readings(scaled("yarn", **YARN), "yarn", tokenizer_max_length=2048)
    assert codes(found["5.24"]) == {"tokenizer-capped"} and "2048" in found["5.24"].problems[0].text


def test_theta_and_scaling_are_dropped_by_readers_of_the_old_dialect() -> None:
    found = readings(v5_only(scaled("llama3", **LLAMA3)), "llama3")
    for version in (*T4, "0.9"):
        assert codes(found[version]) == {"theta-dropped", "factor-ignored"}
        assert "10000 in place of 500000" in found[version].problems[0].text
    assert all(found[name].ok for name in ("5.24", "0.32", "sglang", "llama.cpp"))


@pytest.mark.parametrize("spec", ["pi", "ntk", "abf", "yarn", "llama3", "ntk-by-parts"])
def test_both_dialects_are_right_in_every_version_since_4_51(spec: str) -> None:
    """What ropectl writes; vLLM derives the target under the old and the new rule."""
    found = read_all(patch_facts(base_config(), GEOMETRY, parse_method(spec, 4.0, GEOMETRY), "./out"))
    known = [reading for reading in found if reading.runtime in KNOWN]
    wrong = {reading.version for reading in known if not codes(reading) <= {"length-capped"}}
    assert wrong == ({"4.44", "4.48"} if spec == "yarn" else set())
    assert all(reading.usable_length == found[5].usable_length for reading in found[5:8])


def test_a_raised_length_switches_dynamic_off() -> None:
    from ropectl.hf.config.geometry import describe_rope

    config = scaled("dynamic", factor=2.0, original_max_position_embeddings=2048)
    meant = config_facts(config, describe_rope(config), "./model")
    assert meant.geometry.original_max_position_embeddings == 2048 and meant.target_length == TARGET
    found = {reading.version: reading for reading in read_all(meant)}
    assert all(codes(found[version]) == {"dynamic-no-op"} for version in (*T4, "5.24"))
    assert "dynamic-no-op" in codes(found["0.32"]) and "unscaled-in-gguf" in codes(found["2026"])


def test_exported_dynamic_follows_the_length_in_transformers_only() -> None:
    """Static elsewhere, or nothing at all."""
    found = readings(
        base_config(rope_scaling={"rope_type": "dynamic", "factor": 2.0}), "dynamic-ntk:inner_factor=2", 4096
    )
    assert all(found[version].ok for version in (*T4, "5.24"))
    assert "dynamic-no-op" in codes(found["0.32"]) and "position-table-short" in codes(found["0.32"])
    assert codes(found["sglang"]) == {"static-per-server"} and "scale 3" in found["sglang"].problems[0].text


def test_an_integer_factor_stops_both_servers() -> None:
    found = readings(base_config(rope_scaling={"rope_type": "linear", "factor": 4}), "pi")
    for name in ("0.9", "0.32", "sglang"):
        assert not found[name].loads and codes(found[name]) == {"integer-factor"}
    assert found["5.24"].ok and found["4.44"].ok


def test_an_unknown_type_stops() -> None:
    """Static NTK as a type of its own; vLLM knows another method by that name."""
    found = readings(scaled("ntk", factor=4.0), "ntk")
    assert all(codes(found[name]) == {"unknown-rope-type"} for name in (*T4, "5.24", "sglang"))
    assert found["vllm"].loads and (found["vllm"].max_deviation or 0) > 0.01
    assert codes(found["llama.cpp"]) == {"unscaled-in-gguf"}


def test_a_top_level_original_length_wins_in_transformers_5() -> None:
    config = {**scaled("yarn", **YARN), "original_max_position_embeddings": 1024}
    found = readings(config, "yarn")
    assert codes(found["5.24"]) == {"original-length-overridden"} and found["4.57"].ok


def test_longrope_of_two_lists_is_decided_once_per_server() -> None:
    lists = ",".join(f"{key}={':'.join(map(str, values))}" for key, values in LISTS.items())
    meant = patch_facts(base_config(), GEOMETRY, parse_method(f"longrope:{lists}", 4.0, GEOMETRY), "./out")
    found = {reading.version: reading for reading in read_all(meant)}
    assert codes(found["4.44"]) == codes(found["4.48"]) == {"static-per-model"}
    assert found["4.51"].ok and found["4.57"].ok and found["5.24"].ok and found["0.5.23"].ok
    assert "static-per-server" in codes(found["0.32"]) and found["0.32"].usable_length == 2048
    step = {step.runtime: step for step in next_steps(meant)}
    assert step["vllm"].command == "vllm serve ./out --max-model-len 8192" and "decided once" in step["vllm"].notes[0]
    assert step["llama.cpp"].command is None and "--freeze-at 8192" in str(step["llama.cpp"].refusal)


def test_longrope_is_unscaled_in_a_converted_llama_but_not_in_phi3() -> None:
    spec = "longrope:long_factor=" + ":".join(map(str, LISTS["long_factor"]))
    llama, phi3 = (
        patch_facts(base_config(model_type=kind), GEOMETRY, parse_method(spec, 4.0, GEOMETRY), "./out")
        for kind in ("llama", "phi3")
    )
    assert codes(llama_cpp(read_all(llama))) == {"unscaled-in-gguf"} and llama_cpp(read_all(phi3)).ok
    assert llama_cpp(next_steps(llama)).command == "ropectl patch ./out --gguf-patch FILE.gguf -o COPY.gguf"


def test_without_mscales_the_servers_derive_their_own_factor_for_longrope() -> None:
    """The universal form with A != 1 needs them."""
    universal = {"short_factor": [2.0] * 32, "long_factor": [2.0] * 32, "factor": 1.0, "attention_factor": 1.2}
    block = {**universal, "original_max_position_embeddings": TARGET}
    spec = "longrope:attention_factor=1.2,long_factor=" + ":".join(["2"] * 32)
    for hints, expected in (({}, 1.0), ({"short_mscale": 1.2, "long_mscale": 1.2}, 1.2)):
        found = readings(scaled("longrope", **block, **hints), spec)
        for name in ("0.32", "sglang"):
            assert found[name].attention_factor == expected
            assert ("attention-factor-ignored" in codes(found[name])) == (not hints)


def test_servers_are_started_with_an_override_only_where_they_need_one() -> None:
    """All four values, ready to paste."""
    import json

    meant = facts(scaled("linear", factor=4), "pi")
    for step in next_steps(meant)[1:3]:
        assert step.command is not None
        values = json.loads(step.command.split("'")[1])
        assert values["rope_parameters"] == {"rope_type": "linear", "rope_theta": 500_000.0, "factor": 4.0}
        assert values["max_position_embeddings"] == 2048 and " 8192 " in step.command
    plain = patch_facts(base_config(), GEOMETRY, parse_method("yarn", 4.0, GEOMETRY), "./out")
    assert next_steps(plain)[1].command == "vllm serve ./out --max-model-len 8192"


def test_a_null_head_dim_stops_what_multiplies_it() -> None:
    config = {**scaled("yarn", **YARN, rope_theta=5e5), "model_type": "mixtral", "head_dim": None}
    assert not readings(config, "yarn")["5.24"].loads
    assert readings({**config, "rope_scaling": {"rope_type": "llama3", **LLAMA3}}, "llama3")["5.24"].loads


def test_architectures_that_read_no_factors_are_refused() -> None:
    """Qwen2 has base, linear and yarn only."""
    meant = patch_facts(base_config(model_type="qwen2"), GEOMETRY, parse_method("llama3", 4.0, GEOMETRY), "./out")
    assert codes(llama_cpp(read_all(meant))) == {"unscaled-in-gguf"}
    refused = llama_cpp(next_steps(meant))
    assert refused.command is None and "qwen2" in str(refused.refusal)


def test_a_default_base_is_that_of_the_class() -> None:
    """A file without rope_theta: 1e6 for mixtral, and nothing is dropped."""
    config = {key: value for key, value in llama_config(GEOMETRY).items() if key != "rope_theta"}
    geometry = RopeGeometry(64, 1e6, 2048)
    meant = CheckpointFacts({**config, "model_type": "mixtral"}, geometry, parse_method("none"), 2048, "./m")
    assert all(reading.ok for reading in read_all(meant)[:5])


def test_frozen_methods_are_compared_with_what_the_file_holds() -> None:
    method = parse_method("dynamic-ntk:inner_factor=2")
    found = read_all(patch_facts(base_config(), GEOMETRY, method, "./out", seq_len=4096))
    assert all(reading.ok for reading in found)


def test_a_base_is_meant_for_the_length_that_was_asked_for() -> None:
    """It reaches 68154 tokens; whoever asks for 32768 is served those."""
    geometry = RopeGeometry(128, 10_000.0, 4096)
    method = parse_method("abf:rope_theta=500000", 1.0, geometry)
    asked, own = (
        patch_facts(llama_config(geometry), geometry, method, "MODEL", target_length=target)
        for target in (32_768, None)
    )
    assert (asked.target_length, own.target_length) == (32_768, 68_154)
    assert asked.config["max_position_embeddings"] == 32_768
    assert all(reading.ok for reading in read_all(asked))
