"""Bad input is one message before weights load, exit code 2, and nothing is written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]

CASES = [
    (["eval-perplexity", "-m", "yarm"], ["yarm", "yarn"]),
    (["eval-perplexity", "-m", "yarn"], ["factor", "--factor"]),
    (["eval-perplexity", "-m", "yarn:factor=0.5"], ["factor", "0.5", "at least 1"]),
    (["eval-perplexity", "no/such/folder/here"], ["no/such/folder/here"]),
    (["eval-perplexity", "./missing"], ["./missing", "config.json"]),
    (["eval-perplexity", "--length", "abc"], ["abc", "--length 8k"]),
    (["eval-perplexity", "--length", "1"], ["1", "at least 2"]),
    (["eval-perplexity", "--length", "4k..1k"], ["4k..1k", "backwards"]),
    (["eval-perplexity", "--factor", "4"], ["method"]),
    (["eval-perplexity", "-m", "pi", "--factor", "4", "--target-length", "1k"], ["4", "1024", "contradict"]),
    (["eval-perplexity", "-m", "pi", "--target-length", "256"], ["256", "512"]),
    (["eval-perplexity", "--documents", "0"], ["documents", "0", "at least 1"]),
    (["eval-perplexity", "--text", "nowhere.txt"], ["nowhere.txt"]),
    (["eval-perplexity", "--split", "many"], ["split = 'many'", "--split 8k", "--split auto"]),
    (["eval-perplexity", "--split", "1"], ["split = '1'", "at least 2"]),
    (["eval-perplexity", "--split", "100", "--length", "200,300"], ["split = 100", "200", "--split 300", "auto"]),
    (["compare-methods", "--split", "200", "--factor", "2"], ["split = 200", "256", "--split 1024", "auto"]),
    (
        ["eval-perplexity", "--protocol", "sliding", "--split", "900", "--document-tokens", "1k", "--length", "300"],
        ["document-tokens = 1024", "split = 900"],
    ),
    (["eval-perplexity", "--split", "300", "--length", "200,400", "--strict"], ["300", "400", "leave out --strict"]),
    (["eval-perplexity", "--config", "nowhere.yaml"], ["nowhere.yaml"]),
    (["eval-passkey", "--length", "50"], ["50", "98"]),
    (["eval-passkey", "--distractors", "10"], ["distractors", "10", "at most 9"]),
    (["eval-passkey", "--depths", "0"], ["depths", "0"]),
    (["compare-methods", "-m", "pi", "-m", "nkt", "--factor", "4"], ["nkt", "ntk"]),
    (["compare-methods", "--length", "64,512"], ["64", "98", "--no-passkey"]),
    (["compare-methods", "-m", "pi"], ["pi", "factor"]),
    (["inspect", "--geometry", "rotary_dim=128"], ["rope_theta", "original_max_position_embeddings"]),
    (
        ["inspect", "--geometry", "rotary_dim=x,rope_theta=1e4,original_max_position_embeddings=1"],
        ["rotary_dim", "'x'"],
    ),
    (["inspect", "--geometry", "dim=128"], ["'dim'"]),
    (["inspect", "--factor", "4"], ["method"]),
    (["inspect", "builtin:tiny", "--geometry", "rotary_dim=128"], ["cannot be combined with a model"]),
    (["eval-perplexity", "-o", "/dev/null/x.json"], ["/dev/null"]),
    (["eval-perplexity", "--revision", "v1"], ["--revision v1", "local"]),
    (["eval-perplexity", "--replace"], ["--replace needs a method"]),
    (["eval-perplexity", "--device", "meta"], ["meta"]),
    (["eval-perplexity", "-m", "yarn:factor=1e308"], ["factor", "1e308"]),
    (["eval-perplexity", "-m", "longrope", "--factor", "4"], ["long_factor", "colons", "@FILE.json"]),
    (
        ["inspect", "--geometry", "rotary_dim=100000000,rope_theta=1e4,original_max_position_embeddings=4096"],
        ["rotary_dim", "65536"],
    ),
    (["inspect", "missing.gguf"], ["no GGUF file", "missing.gguf"]),
    (["patch", "--gguf-patch", "missing.gguf", "-m", "pi", "--factor", "2"], ["no GGUF file", "missing.gguf"]),
    (["patch", "-m", "yarn", "--factor", "4"], ["needs a place to write to"]),
    (["patch", "--factor", "4", "-o", "x"], ["need a method"]),
    (["patch", "--compose", "-o", "x"], ["need a method"]),
    (["patch", "-m", "yarn", "--factor", "nan", "-o", "x"], ["factor = 'nan'"]),
    (["patch", "-m", "yarn", "--factor", "4", "--freeze-at", "abc", "-o", "x"], ["abc"]),
    (["patch", "-m", "yarn:beta_fast=1,beta_slow=32", "--factor", "4", "-o", "x"], ["beta_fast"]),
    (["methods", "yarn:factor=4"], ["yarn:factor=4", "ropectl methods yarn"]),
    (["methods", "--choose", "builtin:tiny", "--target-length", "600m"], ["629145600", "512", "1e+06"]),
    (["methods", "--choose", "--target-length", "1k,2k"], ["target-length = '1k,2k'", "--target-length 8k"]),
    (["inspect", "-m", "dynamic-yarn", "--seq-len", "600m"], ["factor", "1228800", "at most"]),
    (["inspect", "-m", "pi:factor=2", "--seq-len", "1k..2k"], ["seq-len = '1k..2k'", "--seq-len 8k"]),
    (["inspect", "-m", "yarn:factor=abc"], ["factor = abc", "it is not a number"]),
    (["eval-tasks", "--task", "multi-key:distractors=abc"], ["distractors = abc", "it is not a whole number"]),
]


@pytest.mark.parametrize(("arguments", "words"), CASES, ids=lambda value: " ".join(value))
def test_one_message(
    ropectl: Run, arguments: list[str], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = ropectl(*arguments)
    assert code == 2 and out == ""
    assert err.startswith("Error: ") and err.count("Error") == 1 and "Traceback" not in err
    assert all(word in err for word in words), err
    assert len(err.strip().splitlines()) <= 3
    assert "2048,4096" not in err or "--length" in arguments, "a list is no example where one length is wanted"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["eval-perplexity", "--lenght", "5"], ["compare"], ["eval-passkey", "--trials", "x"]]
)
def test_bad_usage(ropectl: Run, arguments: list[str]) -> None:
    code, out, err = ropectl(*arguments)
    assert code == 2 and out == "" and "Traceback" not in err


@pytest.mark.process
def test_found_before_torch_is_imported(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    """Weights that do not fit, places that cannot be written, texts that are none: all that needs no model."""
    model = str(checkpoint(intermediate_size=256))
    commands = (
        *(["eval-perplexity"], ["eval-passkey"], ["eval-tasks"], ["compare-methods", "-m", "pi:factor=2"]),
        *(["patch", "-m", "pi:factor=2", "-o", "out"], ["finetune", "-m", "pi:factor=2", "-o", "out"]),
        *(["harness", "--task", "x"], ["verify-runtime", "--runtime", "vllm", "--python", sys.executable]),
    )
    cases = [
        *(case for case, _ in CASES[:9]),
        *([name, model, *more] for name, *more in commands),
        *(["eval-perplexity", "--text", "/dev/zero"], ["eval-tasks", "--text", "nowhere.txt"]),
        *(["compare-methods", "-m", "pi:factor=2", "-o", model], ["report", "/dev/zero"], ["inspect", "--plot", ""]),
        *(["eval-passkey", "--trials", "9" * 30], ["eval-perplexity", "--config", "/dev/zero"]),
        *(
            ["patch", "-m", "abf:rope_theta=10000", "-o", "out"],
            ["patch", "-m", "pi:factor=2", "--compose", "-o", "out"],
        ),
    ]
    code = (
        "import json, sys\nfrom ropectl.cli.app import main\n"
        "for case in json.loads(sys.argv.pop()):\n    sys.argv = ['ropectl', *case]\n"
        "    try: main()\n    except SystemExit as stop: print(stop.code, 'torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code, json.dumps(cases)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == ["2 False"] * len(cases)


def test_folder_without_config(ropectl: Run, tmp_path: Path) -> None:
    code, _, err = ropectl("inspect", str(tmp_path))
    assert code == 2 and "config.json" in err


@pytest.mark.parametrize("content", ["{", "[]", json.dumps({"hidden_size": 8})])
def test_broken_config(ropectl: Run, tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    code, _, err = ropectl("inspect", str(tmp_path))
    assert code == 2 and err.startswith("Error: ") and "Traceback" not in err


LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_attention_heads": 4,
    "max_position_embeddings": 128,
    "rope_theta": 1e4,
}
SCALED = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rope_scaling": {}}, None),
        ({"rope_scaling": [1]}, ["rope_scaling", "[1]"]),
        ({"rope_parameters": "yarn"}, ["rope_parameters", "'yarn'"]),
        ({"rope_theta": [1]}, ["rope_theta", "[1]"]),
        ({"max_position_embeddings": 10**400}, ["max_position_embeddings", "too large"]),
        ({"max_position_embeddings": float("nan")}, ["max_position_embeddings", "nan"]),
        ({"max_position_embeddings": float("inf")}, ["max_position_embeddings", "inf"]),
        ({"rope_theta": 10**400}, ["rope_theta", "too large"]),
        ({"rope_theta": "10000"}, ["rope_theta", "'10000'", "number"]),
        ({"head_dim": "16"}, ["head_dim", "'16'"]),
        ({"head_dim": 16.0}, ["head_dim", "16.0"]),
        ({"hidden_size": "64"}, ["hidden_size", "'64'"]),
        ({"partial_rotary_factor": "x"}, ["partial_rotary_factor", "'x'"]),
        ({"partial_rotary_factor": 2.0}, ["partial_rotary_factor", "2.0"]),
        ({"partial_rotary_factor": 0.5}, ["partial_rotary_factor", "'llama'", "whole heads"]),
        ({"rope_scaling": {**SCALED, "factor": "4.0"}}, ["factor", "'4.0'"]),
        ({"rope_scaling": {**SCALED, "factor": True}}, ["factor", "True"]),
        ({"rope_scaling": {**SCALED, "truncate": "false"}}, ["truncate", "'false'"]),
        (
            {"rope_scaling": {**SCALED, "original_max_position_embeddings": "32"}},
            ["original_max_position_embeddings", "'32'"],
        ),
        ({"rope_scaling": {**SCALED, "rope_type": "llama3"}}, ["low_freq_factor, high_freq_factor"]),
        ({"rope_scaling": {**SCALED, "rope_type": "longrope", "long_factor": [1] * 8}}, ["short_factor"]),
        ({"rope_scaling": {**SCALED, "rope_type": "longrope", "long_factor": ["a"]}}, ["long_factor", "'a'"]),
    ],
)
def test_configs_that_no_runtime_agrees_on(
    ropectl: Run, tmp_path: Path, changes: dict[str, object], words: list[str] | None
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**LLAMA, **changes}))
    code, out, err = ropectl("inspect", str(tmp_path))
    if words is None:
        assert code == 0
    else:
        assert code == 2 and out == "" and err.startswith("Error: ") and all(word in err for word in words), err


def test_a_length_from_the_class_is_said(ropectl: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps({k: v for k, v in LLAMA.items() if k != "max_position_embeddings"})
    )
    code, out, _ = ropectl("inspect", str(tmp_path))
    assert code == 0 and "does not say max_position_embeddings" in " ".join(out.split())


def test_flags_override_the_files_other_way_to_say_a_factor(ropectl: Run, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("factor: 4\nmethod: yarn\n")
    code, out, _ = ropectl("eval-perplexity", "--config", path, "--target-length", "4k", "--print-config")
    assert code == 0 and json.loads(out)["factor"] is None and json.loads(out)["target_length"] == 4096


def test_debug_shows_the_traceback(ropectl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from ropectl.errors import MethodError

    monkeypatch.setenv("ROPECTL_DEBUG", "1")
    with pytest.raises(MethodError):
        ropectl("methods", "yrn")


def test_a_length_from_the_class_is_not_the_one_derived_from_it(ropectl: Run, tmp_path: Path) -> None:
    """Gemma 3 as on the hub: 131072 is the default, 16384 is what a factor of 8 leaves of it."""
    (tmp_path / "config.json").write_text(json.dumps(GEMMA3))
    _, out, _ = ropectl("inspect", str(tmp_path))
    assert "131072 is the default of its class" in " ".join(out.split())


#: A multimodal config that leaves nearly everything to its class.
GEMMA3 = {
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "num_hidden_layers": 6,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
        "sliding_window": 1024,
    },
}


@pytest.mark.process
def test_libraries_are_not_heard(ropectl: Run, tmp_path: Path) -> None:
    """transformers has opinions on how longrope is written."""
    factors = [1.0] * 48
    block = {"type": "longrope", "short_factor": factors, "long_factor": factors}
    lengths = {"max_position_embeddings": 131072, "original_max_position_embeddings": 4096}
    config = {"model_type": "phi3", "rope_scaling": block, "rope_theta": 1e4, "pad_token_id": 0, **lengths}
    (tmp_path / "config.json").write_text(json.dumps(config))
    script = (
        f"import sys; sys.argv = ['ropectl', 'inspect', {str(tmp_path)!r}]; from ropectl.cli.app import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr.startswith("note: To measure it: ") and done.stderr.count("\n") == 1


def test_self_test_of_layers_with_tables_of_their_own(ropectl: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(GEMMA3))
    code, _, err = ropectl("inspect", str(tmp_path), "--self-test")
    assert code == 2 and "full_attention" in err and "one rotary table" in err


@pytest.mark.parametrize("command", ["eval-perplexity", "eval-passkey", "eval-tasks", "harness"])
def test_what_is_one_process_refuses_a_launcher(command: str, ropectl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    code, out, err = ropectl(command)
    assert (code, out) == (2, "") and f"{command} runs as one process" in err and "compare-methods" in err


@pytest.mark.parametrize("option", ["--prefill-chunk", "--target-length", "--document-tokens"])
def test_a_bad_length_is_called_by_its_option(ropectl: Run, option: str) -> None:
    code, out, err = ropectl("eval-perplexity", "builtin:tiny", option, "1")
    assert code == 2 and not out and f"{option[2:]} = '1' is not a number of tokens" in err
    assert f"{option} 8k" in err
