"""What is written loads in stock transformers, without ropectl, and computes what the method says."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from ropectl.checkpoint.patching import patch_checkpoint
from ropectl.checkpoint.settings import PatchSettings
from ropectl.hf.config.source import read_config
from ropectl.hf.model.rotary import rotary_module
from ropectl.rope.registry import all_methods, parse_method
from tests.conftest import TRAINED, make_model
from tests.tolerances import PARITY, UNIVERSAL_LOGITS

pytestmark = pytest.mark.process

FACTOR = 4
TARGET = FACTOR * TRAINED
LISTS = "long_factor=" + ":".join(str(1 + i) for i in range(8))

#: Every method, in the form in which it can be written.
FORMS: dict[str, dict[str, Any]] = {
    **{name: {"method": name, "factor": FACTOR} for name in all_methods() if name not in ("none", "longrope")},
    "none": {"method": "none"},
    "dynamic-yarn": {"method": "dynamic-yarn", "freeze_at": TARGET},
    "dynamic-ntk frozen": {"method": "dynamic-ntk", "freeze_at": TARGET},
    "longrope": {"method": f"longrope:factor=4,{LISTS}"},
    "yarn with its own A": {"method": "yarn:factor=4,attention_factor=1.3"},
    "by parts as coded": {"method": "yarn:factor=4,attention_factor=1"},
}
DTYPES = ("float32", "bfloat16")

_CLEAN_PROCESS = """
import json, sys, torch
sys.modules["ropectl"] = None   # an import would fail
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM
task = json.load(open(sys.argv[1]))
ids, positions = torch.tensor([task["ids"]]), torch.tensor([task["positions"]])
logits = {}
for name, folder in task["folders"].items():
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto").eval()
    with torch.no_grad():
        together = torch.ones_like(ids)
        output = model(ids, position_ids=positions, attention_mask=together, use_cache=False)
        logits[name] = output.logits.float().contiguous()
save_file(logits, task["out"])
"""


def probe_input() -> tuple[list[int], list[int]]:
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(1, 1024, (48,), generator=generator).tolist()
    return ids, [round(k * (TARGET - 1) / 47) for k in range(48)]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every method in both types, patched from the same weights."""
    root = tmp_path_factory.mktemp("written")
    folders = {}
    for dtype in DTYPES:
        source = root / f"source-{dtype}"
        make_model().to(getattr(torch, dtype)).save_pretrained(source)
        for name, request in FORMS.items():
            out = root / f"{name}-{dtype}"
            patch_checkpoint(PatchSettings(model=str(source), out=out, **request))
            folders[f"{name}/{dtype}"] = out
    return folders


@pytest.fixture(scope="module")
def clean_logits(written: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    """Logits of all of them in one process that cannot import ropectl."""
    scratch = tmp_path_factory.mktemp("clean")
    ids, positions = probe_input()
    folders = {name: str(folder) for name, folder in written.items()}
    task = {"ids": ids, "positions": positions, "folders": folders, "out": str(scratch / "logits.safetensors")}
    (scratch / "task.json").write_text(json.dumps(task))
    done = subprocess.run(
        [sys.executable, "-c", _CLEAN_PROCESS, str(scratch / "task.json")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return load_file(task["out"])


def reference_logits(name: str, dtype: str) -> torch.Tensor:
    """The source's weights with the method's own float64 frequencies put into the buffers by hand."""
    request = FORMS[name]
    geometry = read_config("builtin:tiny").rope.geometry.__class__(16, 10_000.0, TRAINED)
    method = parse_method(request["method"], request.get("factor"), geometry)
    seq_len = request.get("freeze_at") or (TARGET if method.depends_on_seq_len else None)
    frequencies = method.frequencies(geometry, seq_len)
    model = make_model().to(getattr(torch, dtype))
    module = rotary_module(model)
    module.inv_freq = torch.tensor(frequencies.inv_freq, dtype=torch.float32)
    module.attention_scaling = frequencies.attention_factor
    ids, positions = probe_input()
    with torch.no_grad():
        together = torch.ones(1, len(ids), dtype=torch.long)
        inputs = {
            "input_ids": torch.tensor([ids]),
            "position_ids": torch.tensor([positions]),
            "attention_mask": together,
        }
        logits: torch.Tensor = model(**inputs, use_cache=False).logits
    return logits.float()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FORMS)
def test_a_clean_process_computes_the_method(clean_logits: dict[str, torch.Tensor], name: str, dtype: str) -> None:
    """Against frequencies of the formula in the buffers; the config has no part in the reference."""
    expected, actual = reference_logits(name, dtype), clean_logits[f"{name}/{dtype}"]
    difference = ((expected - actual).abs().max() / expected.abs().max()).item()
    assert difference <= UNIVERSAL_LOGITS[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_methods_differ(clean_logits: dict[str, torch.Tensor], dtype: str) -> None:
    """The comparison above would pass for any two methods if positions did not matter."""
    names = ["none", "pi", "ntk", "yarn", "llama3", "by parts as coded", "longrope"]
    for one, other in itertools.combinations(names, 2):
        left, right = (clean_logits[f"{name}/{dtype}"] for name in (one, other))
        assert (left - right).abs().max() > 0.01 * left.abs().max(), f"{one} = {other}"


def v4_reading(config: dict[str, Any]) -> tuple[Any, ...]:
    """As transformers 4 reads the file: top-level base, default 10000, and the scaling dictionary."""
    scaling = config.get("rope_scaling") or {}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    return (
        config.get("rope_theta", 10_000.0),
        kind,
        scaling.get("factor"),
        scaling.get("original_max_position_embeddings"),
    )


def v5_reading(config: dict[str, Any]) -> tuple[Any, ...]:
    """As transformers 5 reads a file that has no old keys."""
    block = config["rope_parameters"]
    keys = ("rope_theta", "rope_type", "factor", "original_max_position_embeddings")
    return tuple(block.get(key) for key in keys)


@pytest.mark.parametrize("name", FORMS)
def test_both_dialects_say_the_same(written: dict[str, Path], name: str) -> None:
    """Two readers written by hand, one for each generation."""
    config = json.loads((written[f"{name}/float32"] / "config.json").read_text())
    assert v4_reading(config) == v5_reading(config)
    assert isinstance(config["max_position_embeddings"], int)
    assert "type" not in (config["rope_scaling"] or {})


def test_lengths_and_factor_agree(written: dict[str, Path]) -> None:
    """Whichever rule a reader uses, it finds the same factor and the trained length."""
    for name in ("yarn", "llama3", "ntk-by-parts", "by parts as coded"):
        config = json.loads((written[f"{name}/float32"] / "config.json").read_text())
        for block in (config["rope_scaling"], config["rope_parameters"]):
            original = block["original_max_position_embeddings"]
            assert original == TRAINED and config["max_position_embeddings"] == round(block["factor"] * original)
            assert isinstance(block["factor"], float)


def test_lengths_of_other_types(written: dict[str, Path]) -> None:
    """Linear and dynamic keep the trained length, which others multiply or start from."""
    lengths = {
        name: json.loads((written[f"{name}/float32"] / "config.json").read_text())["max_position_embeddings"]
        for name in ("pi", "dynamic-ntk", "ntk", "dynamic-yarn", "longrope", "none")
    }
    assert lengths == {
        "pi": TRAINED, "dynamic-ntk": TRAINED, "ntk": TARGET, "dynamic-yarn": TARGET, "longrope": TARGET, "none": TRAINED,
    }  # fmt: skip


def test_what_is_written_is_read_back(written: dict[str, Path]) -> None:
    """The sidecar gives method and geometry back, also where the config alone cannot."""
    for name, request in FORMS.items():
        rope = read_config(str(written[f"{name}/bfloat16"])).rope
        assert rope.geometry.original_max_position_embeddings == TRAINED and rope.geometry.rope_theta == 10_000.0
        assert rope.warnings == ()
        wanted = parse_method(request["method"], request.get("factor"), rope.geometry)
        if "freeze_at" not in request:
            assert rope.method == wanted
        expected = wanted.frequencies(rope.geometry, request.get("freeze_at"))
        actual = rope.method.frequencies(rope.geometry)
        assert actual.inv_freq == pytest.approx(expected.inv_freq, rel=1e-12)
        assert actual.attention_factor == pytest.approx(expected.attention_factor, rel=1e-12)


def test_dynamic_follows_the_length_in_stock_transformers(written: dict[str, Path]) -> None:
    """Raising the declared length would have switched the scaling off."""
    model = AutoModelForCausalLM.from_pretrained(written["dynamic-ntk/float32"]).eval()
    base = make_model().model.rotary_emb.inv_freq
    for length, is_scaled in ((100, False), (TRAINED, False), (TARGET, True)):
        with torch.no_grad():
            model(torch.zeros(1, length, dtype=torch.long))
        last = model.model.rotary_emb.inv_freq[-1]
        assert (last < base[-1] * 0.9) if is_scaled else torch.isclose(last, base[-1], rtol=PARITY)


def test_longrope_switches_after_the_trained_length(tmp_path: Path) -> None:
    """Short up to L, included; long from L + 1."""
    make_model().save_pretrained(tmp_path / "source")
    ones, twos = ":".join(["1"] * 8), ":".join(["2"] * 8)
    spec = f"longrope:factor=4,short_factor={ones},long_factor={twos}"
    patch_checkpoint(PatchSettings(model=str(tmp_path / "source"), method=spec, out=tmp_path / "out"))
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    base = make_model().model.rotary_emb.inv_freq
    for length, divisor in ((TRAINED - 1, 1), (TRAINED, 1), (TRAINED + 1, 2)):
        with torch.no_grad():
            model(torch.zeros(1, length, dtype=torch.long))
        assert torch.allclose(model.model.rotary_emb.inv_freq * divisor, base, rtol=PARITY)


@pytest.mark.process
@pytest.mark.usefixtures("warm_probe")
@pytest.mark.parametrize("is_tied", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_tying_survives(tmp_path: Path, is_tied: bool, dtype: str) -> None:
    """No duplicated head in a tied checkpoint, and the same logits after loading."""
    model = make_model(tie_word_embeddings=is_tied).to(getattr(torch, dtype))
    model.save_pretrained(tmp_path / "source")
    record = patch_checkpoint(
        PatchSettings(model=str(tmp_path / "source"), method="pi", factor=2, out=tmp_path / "out", verify_logits=True)
    )
    assert (
        record["verified"]["logits"]["max_relative_difference"] == 0 and record["verified"]["logits"]["dtype"] == dtype
    )
    assert ("lm_head.weight" in load_file(tmp_path / "out" / "model.safetensors")) is not is_tied


def test_a_wrong_file_is_found_before_it_is_named(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    """The proof reads the disk: a config that says another factor stops everything and leaves nothing."""
    from ropectl.checkpoint import writing
    from ropectl.errors import PatchError

    folder, original = checkpoint(), writing.write_json

    def spoilt(path: Path, value: Any, **how: Any) -> None:
        if path.name == "config.json":
            for block in (value["rope_scaling"], value["rope_parameters"]):
                block["factor"] = 5.0
        original(path, value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "write_json", spoilt)
        with pytest.raises(PatchError, match="Rotary pair"):
            patch_checkpoint(PatchSettings(model=str(folder), method="yarn", factor=4, out=tmp_path / "out"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint"]


def test_wrong_logits_are_found(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    """The other process really runs the written files: other weights there are seen."""
    from safetensors.torch import save_file

    from ropectl.checkpoint import patching
    from ropectl.errors import PatchError

    folder, original = checkpoint(), patching.copy_files

    def spoilt(files: Any, out: Path, *rest: Any) -> None:
        original(files, out, *rest)
        weights = load_file(out / "model.safetensors")
        weights["model.norm.weight"] *= 1.001
        save_file(weights, out / "model.safetensors", metadata={"format": "pt"})

    settings = PatchSettings(model=str(folder), method="yarn", factor=4, out=tmp_path / "out", verify_logits=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patching, "copy_files", spoilt)
        with pytest.raises(PatchError, match="other logits"):
            patch_checkpoint(settings)
    assert not (tmp_path / "out").exists()


def test_sizes_that_a_file_leaves_to_its_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gemma 3 as on the hub does not say how many heads it has; the proof reads both dialects all the same."""
    monkeypatch.setattr(
        "ropectl.hf.model.loading.check_loadable", lambda *_: None
    )  # its weights are 400 million numbers
    text = {"model_type": "gemma3_text", "hidden_size": 64, "num_hidden_layers": 6, "intermediate_size": 64}
    config = {"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"]}
    text |= {"rope_scaling": {"rope_type": "linear", "factor": 8.0}, "sliding_window": 1024}
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "config.json").write_text(json.dumps({**config, "text_config": text}))
    save_file({"weight": torch.zeros(1)}, tmp_path / "source" / "model.safetensors")
    record = patch_checkpoint(
        PatchSettings(model=str(tmp_path / "source"), method="yarn", factor=8, replace=True, out=tmp_path / "out")
    )
    assert record["verified"]["dialects"] == "equal" and record["max_position_embeddings"] == 131_072
