"""The self-test's checks on real rotary code of several families, and on broken code, which they must fail."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    CohereConfig,
    GlmConfig,
    GPTNeoXConfig,
    GptOssConfig,
    Llama4TextConfig,
    PhiConfig,
    PretrainedConfig,
)

from ropectl.errors import ConfigError, UnsupportedModelError
from ropectl.hf.config.geometry import describe_rope
from ropectl.hf.model.patch import apply_rope
from ropectl.hf.model.rotary import rotary_module
from ropectl.hf.self_test.checks import (
    Check,
    check_casts,
    check_decay,
    check_norms,
    check_offset,
    check_tables,
    measured_decay,
    normal_vectors,
)
from ropectl.hf.self_test.code import RotaryCode, built_in, llama_config, rotary_code
from ropectl.hf.self_test.decay import decay_curve, first_negative, lowest_base, mean_scores
from ropectl.hf.self_test.pairing import PAIRINGS, check_pairing, naive_scores
from ropectl.hf.self_test.record import LONGEST, run_checks, self_test
from ropectl.rope.frequencies import RopeFrequencies, base_inv_freq
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
from tests.conftest import tiny_config
from tests.tolerances import EXACT

TARGET = 2048
GEOMETRY = RopeGeometry(16, 10_000.0, 128)
EXPECTED = RopeFrequencies(base_inv_freq(16, 10_000.0))

_SMALL: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "max_position_embeddings": 512,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "pad_token_id": 0,
}

#: Config, pairing, width of what rotates.
FAMILIES: dict[str, tuple[PretrainedConfig, str, int]] = {
    "llama": (tiny_config(), "half-split", 16),
    "phi (partial)": (PhiConfig(**_SMALL), "half-split", 8),
    "gpt-neox (partial)": (GPTNeoXConfig(**_SMALL), "half-split", 4),
    "gpt-oss (tables of half the width)": (
        GptOssConfig(**_SMALL, head_dim=16, num_local_experts=2, num_experts_per_tok=1),
        "half-split",
        16,
    ),
    "cohere": (CohereConfig(**_SMALL), "interleaved", 16),
    "glm (partial)": (GlmConfig(**_SMALL, head_dim=16), "interleaved", 8),
}


def checked(
    code: RotaryCode, geometry: RopeGeometry, spec: str, length: int = TARGET
) -> tuple[list[Check], str | None]:
    method = parse_method(spec)
    frozen = length if method.depends_on_seq_len else None
    with apply_rope(code.model, method, geometry=geometry, seq_len=frozen):
        return run_checks(code, method.frequencies(geometry, frozen), length)


@pytest.fixture
def code() -> RotaryCode:
    return rotary_code(llama_config(GEOMETRY))


@pytest.mark.parametrize("spec", ["none", "pi:factor=4", "yarn:factor=4", "dynamic-ntk"])
@pytest.mark.parametrize("family", FAMILIES)
def test_real_code_of_every_kind_of_family(family: str, spec: str) -> None:
    config, pairing, width = FAMILIES[family]
    code = rotary_code(config)
    checks, found = checked(code, describe_rope(config.to_dict()).geometry, spec)
    assert (found, code.width) == (pairing, width)
    assert len(checks) == 9 and [check for check in checks if not check.passed] == []
    assert code.name.startswith("transformers.models.") and all(p.is_meta for p in code.model.parameters())


@pytest.mark.parametrize(("dim", "base", "trained", "target"), [(128, 5e5, 8192, 131_072), (64, 1e4, 4096, 4096)])
def test_long_lengths_pass_with_their_bounds(dim: int, base: float, trained: int, target: int) -> None:
    geometry = RopeGeometry(dim, base, trained)
    checks, _ = checked(rotary_code(llama_config(geometry)), geometry, "none", target)
    assert [check for check in checks if not check.passed] == []


def test_rounded_tables_fail_the_offset_check(code: RotaryCode) -> None:
    good = check_offset(code, EXPECTED, TARGET)
    bad = check_offset(replace(code, table_dtype=torch.bfloat16), EXPECTED, TARGET)
    assert [check.passed for check in good] == [True, True]
    assert [check.passed for check in bad] == [False, True]
    assert bad[0].measured > 10 * good[0].measured


def test_a_position_dependent_scale_fails_the_offset_and_the_norm_check(code: RotaryCode) -> None:
    def apply(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> Any:
        growing = torch.linspace(1.0, 1.001, q.shape[2])[:, None]
        return tuple(out * growing for out in code.apply(q, k, cos, sin))

    broken = replace(code, apply=apply)
    assert not check_offset(broken, EXPECTED, TARGET)[0].passed
    assert not check_norms(broken, EXPECTED, TARGET).passed


def half_tables(cos: torch.Tensor) -> torch.Tensor:
    return cos[..., : cos.shape[-1] // 2][:, None]


def interleaved(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> Any:
    c, s = half_tables(cos), half_tables(sin)

    def turn(x: torch.Tensor) -> torch.Tensor:
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)

    return turn(q), turn(k)


def backwards(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> Any:
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    return apply_rotary_pos_emb(q, k, cos, -sin)


def mixed(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> Any:
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    return apply_rotary_pos_emb(q, k, cos, sin)[0], interleaved(q, k, cos, sin)[1]


def test_another_pairing_is_seen(code: RotaryCode) -> None:
    checks, pairing = check_pairing(replace(code, apply=interleaved), EXPECTED)
    assert pairing == "interleaved" and all(check.passed for check in checks)
    assert check_pairing(code, EXPECTED)[1] == "half-split"


@pytest.mark.parametrize("wrong", [backwards, mixed])
def test_neither_pairing_is_an_error(code: RotaryCode, wrong: Callable[..., Any]) -> None:
    checks, pairing = check_pairing(replace(code, apply=wrong), EXPECTED)
    assert pairing is None and not checks[0].passed


class OffByOne(RotaryCode):
    """Keys one position late, as after an off-by-one in a cache."""

    def scores(self, q: Any, k: Any, query_positions: Any, key_positions: Any) -> torch.Tensor:
        return super().scores(q, k, query_positions, key_positions + 1)


def test_a_wrong_offset_fails_pairing_and_decay(code: RotaryCode) -> None:
    wrong = OffByOne(code.model, code.apply)
    assert check_pairing(wrong, EXPECTED)[1] is None and not check_pairing(wrong, EXPECTED)[0][0].passed
    assert not check_decay(wrong, EXPECTED, TARGET).passed
    assert check_decay(code, EXPECTED, TARGET).passed


def test_another_method_in_the_model_than_expected_fails(code: RotaryCode) -> None:
    with apply_rope(code.model, parse_method("yarn:factor=4"), geometry=GEOMETRY):
        assert not check_tables(code.model, EXPECTED, "tables").passed
        assert not check_norms(code, EXPECTED, TARGET).passed, "A squared is missing"
        assert not check_pairing(code, EXPECTED)[0][0].passed


def test_one_pair_has_no_other_pairing() -> None:
    geometry = RopeGeometry(2, 10_000.0, 128)
    checks, pairing = checked(rotary_code(llama_config(geometry)), geometry, "none")
    assert pairing is None and len(checks) == 8 and all(check.passed for check in checks)


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_the_naive_rotation_by_matrices(pairing: str) -> None:
    """Against 2 x 2 rotation matrices, one pair at a time."""
    generator = torch.Generator().manual_seed(3)
    q, k = torch.randn(2, 1, 6, generator=generator, dtype=torch.float64)
    expected, m, n = RopeFrequencies((1.0, 0.3, 0.01), 1.1), 17, 5
    total = 0.0
    for pair, frequency in enumerate(expected.inv_freq):
        channels = (pair, pair + 3) if pairing == "half-split" else (2 * pair, 2 * pair + 1)
        turned = []
        for vector, position in ((q, m), (k, n)):
            x, y, angle = float(vector[0, channels[0]]), float(vector[0, channels[1]]), position * frequency
            turned.append(
                (x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)),
            )
        total += turned[0][0] * turned[1][0] + turned[0][1] * turned[1][1]
    scores = naive_scores(q, k, torch.tensor([m]), torch.tensor([n]), expected, pairing)
    assert float(scores[0, 0]) == pytest.approx(total * 1.1**2, rel=1e3 * EXACT)


def test_a_cast_is_found_and_put_back(code: RotaryCode) -> None:
    before = code.module.inv_freq
    loaded, cast = check_casts(code, EXPECTED, 32_768)
    assert loaded.passed and cast.passed and code.module.inv_freq is before
    rounded = torch.tensor(EXPECTED.inv_freq).bfloat16().double()
    phase = float((rounded - torch.tensor(EXPECTED.inv_freq, dtype=torch.float64)).abs().max()) * 32_768
    assert cast.measured == pytest.approx(phase, rel=1e-3) and phase > 1


def test_a_cast_that_is_not_found_fails(code: RotaryCode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ropectl.hf.self_test.checks.verify_rope", lambda *_: None)
    assert not check_casts(code, EXPECTED, TARGET)[1].passed


def test_building_under_a_dtype_is_what_loading_does(code: RotaryCode, tmp_path: Path) -> None:
    """The stand-in without weights holds the same tables as a checkpoint loaded with ``dtype=``."""
    AutoModelForCausalLM.from_config(tiny_config()).save_pretrained(tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.bfloat16)
    built = built_in(rotary_code(tiny_config()), torch.bfloat16)
    for model in (loaded, built):
        assert model.dtype == torch.bfloat16 and rotary_module(model).inv_freq.dtype == torch.float32
    assert torch.equal(rotary_module(loaded).inv_freq, rotary_module(built).inv_freq)


def test_mean_scores_are_the_sum_of_cosines() -> None:
    inv_freq = base_inv_freq(8, 100.0)
    wanted = [sum(math.cos(m * f) for f in inv_freq) / 4 for m in range(1, 50)]
    actual = mean_scores(inv_freq, torch.arange(1, 50)).tolist()
    assert actual == pytest.approx(wanted, abs=1e3 * EXACT)
    first = next(m for m, value in enumerate(wanted, 1) if value < 0)
    assert first_negative(inv_freq, 49) == first and first_negative(inv_freq, first - 1) is None
    curve = decay_curve(inv_freq, 49)
    assert min(curve["low"]) == pytest.approx(min(wanted)) and max(curve["high"]) == pytest.approx(max(wanted))
    assert curve["first_negative"] == first


@pytest.mark.parametrize("spec", ["none", "yarn:factor=4", "pi:factor=4"])
def test_the_codes_decay_is_the_closed_form(code: RotaryCode, spec: str) -> None:
    method, distances = parse_method(spec), torch.tensor([1, 2, 5, 100, 511])
    expected = method.frequencies(GEOMETRY)
    with apply_rope(code.model, method, geometry=GEOMETRY):
        measured = measured_decay(code, expected, distances)
    wanted = [sum(math.cos(m * f) for f in expected.inv_freq) / 8 for m in distances.tolist()]
    assert measured.tolist() == pytest.approx(wanted, abs=2e-5)


@pytest.mark.parametrize(("dim", "length"), [(128, 512), (64, 1024), (16, 128)])
def test_lowest_base_against_trying_them_all(dim: int, length: int) -> None:
    found = lowest_base(dim, length)
    assert found is not None

    def works(base: float) -> bool:
        table = torch.tensor([base ** (-2 * i / dim) for i in range(dim // 2)], dtype=torch.float64)
        return bool((torch.outer(torch.arange(length + 1.0).double(), table).cos().sum(-1) >= 0).all())

    below = [found / 1.02**step for step in range(1, 200)]
    assert works(found) and not works(found / 1.002) and sum(map(works, below)) <= 2, "isolated bases may work"


@pytest.mark.process
@pytest.mark.parametrize("length", [1024, 4096, 8192, 32_768])
def test_lowest_bases_lie_along_the_papers_line(length: int) -> None:
    """The line fitted in Figure 1 of arXiv 2405.14591 (heads of 128), 0.0424 L^1.628: its points scatter about it by half."""
    found = lowest_base(128, length)
    assert found is not None and 1 / 1.6 < found / (0.0424 * length**1.628) < 1.6


@pytest.mark.process
def test_no_base_serves_a_single_pair() -> None:
    assert lowest_base(2, 100) is None


@pytest.mark.process
def test_record(code: RotaryCode) -> None:
    methods = [parse_method(spec) for spec in ("none", "yarn:factor=4", "dynamic-ntk")]
    threads, before = torch.get_num_threads(), code.module.inv_freq.clone()
    record = self_test("numbers", code, GEOMETRY, methods, 512)
    assert torch.get_num_threads() == threads and torch.equal(code.module.inv_freq, before)
    assert record["passed"] and record["pairing"] == "half-split" and len(record["checks"]) == 27
    assert {check["seq_len"] for check in record["checks"] if check["method"] == "dynamic-ntk"} == {512}
    labels = [(curve["kind"], curve["method"]) for curve in record["decay"]]
    assert labels[:3] == [("base", f"abf:rope_theta={base}") for base in (10_000, 500_000, 1_000_000)]
    assert labels[3:] == [("method", str(method)) for method in methods]
    assert record["decay"][0]["first_negative"] == first_negative(EXPECTED.inv_freq, 512)
    assert [bound["context_length"] for bound in record["base_bounds"]] == [128, 512]
    broken = self_test("numbers", replace(code, apply=backwards), GEOMETRY, methods[:1], 512)
    assert not broken["passed"] and broken["pairing"] is None


def test_code_that_gives_no_number_fails(code: RotaryCode) -> None:
    def broken(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> Any:
        return q * torch.nan, k * torch.nan

    checks = run_checks(replace(code, apply=broken), EXPECTED, TARGET)[0]
    assert [check.passed for check in checks] == [True, False, False, False, False, False, False, True, True]


def test_refusals(code: RotaryCode) -> None:
    with pytest.raises(UnsupportedModelError, match="freqs_cis"):
        rotary_code(Llama4TextConfig(**_SMALL, head_dim=16))
    with pytest.raises(ConfigError, match=str(LONGEST)):
        self_test("numbers", code, GEOMETRY, [parse_method("none")], LONGEST + 1)


def test_vectors_are_the_same_every_time(code: RotaryCode) -> None:
    assert torch.equal(normal_vectors(code), normal_vectors(code)) and normal_vectors(code).shape == (16, 16)


Run = Callable[..., tuple[int, str, str]]


@pytest.mark.process
def test_command_for_people(ropectl: Run, tmp_path: Path) -> None:
    figure = tmp_path / "decay.svg"
    code, out, err = ropectl(
        "inspect", "--self-test", "-m", "yarn", "-m", "dynamic-ntk", "--factor", "2", "--plot", figure
    )
    assert code == 0 and err.startswith("note: To measure it: ") and figure.read_text().startswith("<?xml")
    assert all(len(line) <= 80 for line in out.splitlines()) and "\u2026" not in out
    assert "all 18 checks passed" in out and "half-split" in out and "frozen at 1024" in out and "[rad]" in out


@pytest.mark.process
def test_command_json_and_exit_code(ropectl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = "rotary_dim=16,rope_theta=10000,original_max_position_embeddings=128"
    arguments = ("inspect", "--geometry", numbers, "--self-test", "--target-length", "256", "--format", "json")
    code, out, err = ropectl(*arguments)
    record = json.loads(out)
    assert (code, err) == (0, "") and record["passed"] and record["target_length"] == 256
    assert {"name", "measured", "allowed", "relation", "passed", "method"} <= set(record["checks"][0])
    monkeypatch.setattr("transformers.models.llama.modeling_llama.apply_rotary_pos_emb", interleaved_keys)
    code, out, err = ropectl(*arguments)
    assert code == 1 and err == "" and not json.loads(out)["passed"], "a wrong pairing in the model's own code"


def interleaved_keys(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> Any:
    c, s = half_tables(cos), half_tables(sin)
    (a, b), (x, y) = q.chunk(2, -1), (k[..., 0::2], k[..., 1::2])
    keys = torch.stack([x * c - y * s, x * s + y * c], -1).flatten(-2)
    return torch.cat([a * c - b * s, a * s + b * c], -1), keys


def test_a_config_is_enough(ropectl: Run, tmp_path: Path) -> None:
    tiny_config().save_pretrained(tmp_path)
    code, out, _ = ropectl("inspect", str(tmp_path), "--self-test", "--format", "json")
    assert code == 0 and json.loads(out)["function"] == "transformers.models.llama.modeling_llama.apply_rotary_pos_emb"
