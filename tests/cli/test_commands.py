"""Each command through its front door: exit codes, JSON contract, plain tables, help."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., tuple[int, str, str]]
COMMANDS = ["compare-methods", "eval-passkey", "eval-perplexity", "inspect", "methods"]
GEOMETRY = "rotary_dim=128,rope_theta=10000,original_max_position_embeddings=2048"


@pytest.mark.process
def test_help_is_complete_and_imports_no_torch() -> None:
    code = (
        "import sys; sys.argv = ['ropectl', '--help']\nfrom ropectl.cli.app import main\n"
        "try: main()\nexcept SystemExit as stop:\n print(stop.code, [m for m in ('torch', 'transformers', 'pydantic') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip().endswith("0 []")
    assert all(command in result.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(ropectl: Run, command: str) -> None:
    code, out, _ = ropectl(command, "--help")
    assert code == 0 and f"Example: ropectl {command}" in " ".join(out.split())


def test_version(ropectl: Run) -> None:
    code, out, _ = ropectl("--version")
    assert code == 0 and out.strip().count(".") == 2


def test_methods_json(ropectl: Run) -> None:
    code, out, err = ropectl("methods", "--format", "json")
    entries = json.loads(out)
    assert code == 0 and err == "" and entries[0]["name"] == "none"
    assert all(
        {"name", "title", "parameters", "depends_on_seq_len", "reference", "native"} <= set(entry) for entry in entries
    )
    yarn = next(entry for entry in entries if entry["name"] == "yarn")
    assert {"name": "beta_fast", "default": 32.0, "unit": "rotations"}.items() <= yarn["parameters"][1].items()


def test_methods_for_people(ropectl: Run) -> None:
    code, out, _ = ropectl("methods")
    assert code == 0 and all(len(line) <= 80 for line in out.splitlines())
    code, out, _ = ropectl("methods", "dynamic-ntk")
    assert code == 0 and "inner_factor" in out and "arXiv" in out and "inv_freq_i" in out


def test_inspect_numbers(ropectl: Run) -> None:
    code, out, err = ropectl(
        "inspect", "--geometry", GEOMETRY, "-m", "ntk", "--target-length", "8192", "--format", "json"
    )
    record = json.loads(out)
    assert code == 0 and err == ""
    keys = {
        "geometry",
        "method",
        "inv_freq",
        "attention_factor",
        "wavelengths",
        "rotations",
        "divisors",
        "reach",
        "warnings",
    }
    assert keys <= set(record)
    assert record["method"] == "ntk:factor=4" and record["reach"] == 5048
    assert record["rope_parameters"]["rope_theta"] == pytest.approx(40_889.942)
    assert len(record["inv_freq"]) == len(record["divisors"]) == 64 and record["divisors"][-1] == pytest.approx(4)
    assert "5048" in record["warnings"][0]


def test_inspect_three_lengths_of_a_dynamic_method(ropectl: Run) -> None:
    tables = []
    for length in ("2048", "3072", "4096"):
        _, out, _ = ropectl(
            "inspect",
            "--geometry",
            GEOMETRY,
            "-m",
            "dynamic-ntk:inner_factor=2",
            "--seq-len",
            length,
            "--format",
            "json",
        )
        tables.append(json.loads(out)["inv_freq"])
    _, out, _ = ropectl("inspect", "--geometry", GEOMETRY, "--format", "json")
    assert tables[0] == json.loads(out)["inv_freq"] and tables[0] != tables[1] != tables[2]


def test_inspect_for_people_fits_and_says_the_base(ropectl: Run) -> None:
    code, out, _ = ropectl("inspect", "--geometry", GEOMETRY, "-m", "ntk", "--target-length", "8192")
    assert code == 0 and all(len(line) <= 80 for line in out.splitlines())
    assert "40889.9" in out and "5048" in out


@pytest.mark.process
def test_inspect_the_builtin_model_without_torch() -> None:
    code = (
        "import sys; sys.argv = ['ropectl', 'inspect', 'builtin:tiny']\nfrom ropectl.cli.app import main\n"
        "try: main()\nexcept SystemExit as stop: print(stop.code, 'torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "trained length 512" in result.stdout and result.stdout.strip().endswith("0 False")


def test_inspect_a_scaled_config_shows_its_scaling(ropectl: Run, tmp_path: Path) -> None:
    """A Llama 3.1 config is understood, and another method is not stacked on it."""
    block = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    config = {
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "max_position_embeddings": 131072,
        "rope_theta": 500000.0,
        "model_type": "llama",
    }
    (tmp_path / "config.json").write_text(json.dumps({**config, "rope_scaling": block}))
    code, out, _ = ropectl("inspect", str(tmp_path))
    assert code == 0 and "llama3:factor=8" in out and "trained length 8192" in out
    code, _, err = ropectl("inspect", str(tmp_path), "-m", "yarn", "--target-length", "262144")
    assert code == 2 and "already scaled: llama3:factor=8" in err and "--replace" in err
    code, out, _ = ropectl(
        "inspect", str(tmp_path), "-m", "yarn", "--target-length", "262144", "--replace", "--format", "json"
    )
    assert code == 0 and json.loads(out)["method"] == "yarn:factor=32"


@pytest.mark.process
def test_eval_perplexity(ropectl: Run, tmp_path: Path) -> None:
    out_file = tmp_path / "p.json"
    code, out, err = ropectl(
        "eval-perplexity", "-m", "yarn", "--factor", "2", "--length", "64,1k", "--documents", "2", "--format", "json", "-o", out_file
    )  # fmt: skip
    record = json.loads(out)
    assert code == 0 and json.loads(out_file.read_text()) == record
    assert record["method"] == "yarn:factor=2" and record["protocol"] == "prefix"
    assert [point["context_length"] for point in record["points"]] == [64, 1024]
    for point in record["points"]:
        assert {"context_length", "perplexity", "nll_sum", "num_tokens", "num_documents"} <= set(point)
        assert point["num_tokens"] == 2 * (point["context_length"] - 1)
    assert record["manifest"]["bos_token_id"] == 0 and record["manifest"]["versions"]["torch"]
    assert "\x1b" not in out + err


@pytest.mark.parametrize("command", ["eval-perplexity", "eval-passkey"])
def test_results_are_not_overwritten_unasked(ropectl: Run, tmp_path: Path, command: str) -> None:
    path = tmp_path / "r.json"
    path.write_text("precious")
    code, _, err = ropectl(command, "-o", path)
    assert code == 2 and "--overwrite" in err and path.read_text() == "precious"
    code, _, err = ropectl(command, "-o", tmp_path)
    assert code == 2 and "is a folder" in err
    small = ["--documents", "1"] if command == "eval-perplexity" else ["--trials", "1", "--depths", "1"]
    assert ropectl(command, "-o", path, "--overwrite", "--length", "128", *small)[0] == 0
    assert json.loads(path.read_text())["method"] == "none"


@pytest.mark.process
def test_a_number_says_what_was_scored(ropectl: Run) -> None:
    """Protocol, context, documents and tokens are in the record; protocol tail scores the same targets at every length."""
    hashes = set()
    for protocol, lengths in (("prefix", "128,512"), ("tail", "128,512"), ("tail", "256,512")):
        arguments = ["--protocol", protocol, "--length", lengths, "--documents", "2", "--format", "json"]
        record = json.loads(ropectl("eval-perplexity", *arguments)[1])
        assert record["protocol"] == protocol and len(record["manifest"]["documents"]) == 2
        assert all(point["num_documents"] == 2 for point in record["points"])
        hashes.add(record["manifest"]["tokens_sha256"])
        if protocol == "tail":
            targets = record["manifest"]["tail_targets_per_document"]
            assert {point["num_tokens"] for point in record["points"]} == {2 * targets}
    assert len(hashes) == 1


@pytest.mark.process
def test_eval_perplexity_marks_what_lies_beyond(ropectl: Run) -> None:
    code, out, err = ropectl("eval-perplexity", "--length", "256,1k", "--documents", "1")
    assert code == 0 and "1024" in out and "*" in out
    assert "Past the length that none is made for (512 tokens): 1024" in err


@pytest.mark.process
def test_eval_passkey(ropectl: Run) -> None:
    code, out, _ = ropectl("eval-passkey", "--length", "128,256", "--depths", "3", "--trials", "4", "--format", "json")
    record = json.loads(out)
    assert code == 0 and record["method"] == "none" and len(record["cells"]) == 6
    keys = {"length", "depth", "correct", "trials", "accuracy", "ci_low", "ci_high", "answer_logprob"}
    assert all(keys <= set(cell) and cell["trials"] == 4 for cell in record["cells"])
    assert record["chance"] == pytest.approx(1 / 90_000)
    again = json.loads(
        ropectl("eval-passkey", "--length", "256,128", "--depths", "3", "--trials", "4", "--format", "json")[1]
    )
    assert (
        again["cells"] == record["cells"]
        and again["manifest"]["prompts_sha256"] == record["manifest"]["prompts_sha256"]
    )


def test_eval_passkey_default_is_ten_trials_a_cell(ropectl: Run) -> None:
    _, out, _ = ropectl("eval-passkey", "--print-config")
    assert json.loads(out)["trials"] == 10


@pytest.mark.process
def test_a_factor_decides_the_default_lengths_of_methods_that_follow_the_length(ropectl: Run) -> None:
    code, out, _ = ropectl(
        "eval-perplexity", "-m", "dynamic-ntk", "--factor", "4", "--documents", "1", "--format", "json"
    )
    assert code == 0 and [p["context_length"] for p in json.loads(out)["points"]] == [256, 512, 1024, 2048]


@pytest.mark.process
@pytest.mark.parametrize("depths", ["1", "5", "17"])
def test_eval_passkey_for_people_loses_nothing(ropectl: Run, depths: str) -> None:
    code, out, _ = ropectl("eval-passkey", "--length", "128,1k", "--depths", depths, "--trials", "1")
    assert code == 0 and all(len(line) <= 80 for line in out.splitlines())
    assert "\u2026" not in out and "128" in out and "1024*" in out and "past the length" in out
    if depths == "17":
        assert all(f"{k / 16:.0%}" in out for k in range(17)) and "same" not in out.splitlines()[0]


@pytest.mark.process
def test_eager_attention_says_what_it_holds(ropectl: Run) -> None:
    small = ["--length", "1k", "--documents", "1"]
    _, plain, err = ropectl("eval-perplexity", *small, "--format", "json")
    assert "eager" not in err
    code, out, err = ropectl("eval-perplexity", *small, "--attention", "eager", "--format", "json")
    assert code == 0 and "8 x 1024 x 1024" in err and "0.0 GiB" in err
    left, right = (json.loads(text)["points"][0]["perplexity"] for text in (plain, out))
    assert left == pytest.approx(right, rel=1e-5)


def test_config_file_and_flags(ropectl: Run, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("lengths: [64, 1k..2k]\ndocuments: 3\nmethod: yarn:factor=2\n")
    code, out, _ = ropectl("eval-perplexity", "--config", path, "--documents", "5", "--print-config")
    settings: dict[str, Any] = json.loads(out)
    assert code == 0 and settings["lengths"] == [64, 1024, 2048]
    assert (settings["documents"], settings["method"], settings["text"]) == (5, "yarn:factor=2", "builtin:stdlib")


def test_repository_configs_load(ropectl: Run) -> None:
    paths = sorted((Path(__file__).parent.parent.parent / "configs" / "compare").glob("*.yaml"))
    assert paths
    for path in paths:
        code, out, err = ropectl("compare-methods", "--config", path, "--print-config")
        assert code == 0, err
        assert json.loads(out)["model"]
