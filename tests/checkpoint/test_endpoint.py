"""``verify-runtime --endpoint`` against servers that compute one reading each, through every protocol."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropectl.checkpoint.verify.asking import FEW_POSITIONS
from tests.checkpoint.fake_servers import (
    Fake,
    FakeLlama,
    FakeOpenAi,
    FakeSglang,
    FakeVllm,
    serving,
    stock_rows,
    unused_port,
)
from tests.conftest import TRAINED

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("one_thread")]

Checkpoint = Callable[..., Path]
Run = Callable[..., tuple[int, str, str]]

THETA, FACTOR, LENGTH = 50_000.0, 4.0, 320
A = 0.1 * math.log(FACTOR) + 1
YARN = {"rope_type": "yarn", "rope_theta": THETA, "factor": FACTOR, "original_max_position_embeddings": TRAINED}

#: What is changed of the block, or the declared length, and the reading that it is.
FAULTS: list[tuple[dict[str, Any], str]] = [
    ({}, "as-meant"),
    ({"rope_type": "default"}, "unscaled"),
    ({"attention_factor": 1.0}, "attention-factor-missing"),
    ({"attention_factor": A * A}, "attention-factor-twice"),
    ({"rope_theta": 10_000.0}, "theta-dropped"),
    ({"rope_type": "default", "rope_theta": 10_000.0}, "unscaled-theta-dropped"),
    ({"original_max_position_embeddings": 4 * TRAINED}, "original-length-ignored"),
    ({"factor": FACTOR * FACTOR}, "factor-twice"),
    ({"rope_type": "linear"}, "type-pi"),
    ({"rope_theta": 25_000.0}, "none"),
]


@pytest.fixture
def scaled(checkpoint: Checkpoint) -> Path:
    """TINY scaled by yarn, as its config says."""
    return checkpoint(max_position_embeddings=4 * TRAINED, rope_parameters=YARN)


def check(ropectl: Run, model: Path, url: str, *more: str, length: int = LENGTH) -> tuple[int, dict[str, Any]]:
    code, out, err = ropectl(
        "verify-runtime", str(model), "--endpoint", url, "--length", str(length), "--format", "json", *more
    )
    assert out, err
    return code, json.loads(out)


@pytest.mark.parametrize(("changes", "expected"), FAULTS, ids=lambda value: value if isinstance(value, str) else "")
def test_each_reading_is_named(scaled: Path, ropectl: Run, changes: dict[str, Any], expected: str) -> None:
    with serving(FakeVllm(stock_rows(scaled, **changes))) as url:
        code, record = check(ropectl, scaled, f"{url}/v1")
    assert record["verdict"] == expected and code == (expected != "as-meant")
    assert record["as_meant"] == record["agrees"] == (expected == "as-meant")
    assert record["server"]["kind"] == "vllm" and record["server"]["version"] == "0.0 (fake)"
    assert record["num_past_trained_length"] == LENGTH - TRAINED and record["alike"] == []
    if expected == "none":
        assert record["reason"] and record["margin"] is None
    else:
        assert record["margin_low"] > 10 * record["noise"] and record["noise"] < 1e-4


@pytest.mark.parametrize("kind", [FakeOpenAi, FakeSglang, FakeLlama])
@pytest.mark.parametrize(("changes", "expected"), [FAULTS[0], FAULTS[3]], ids=lambda v: v if isinstance(v, str) else "")  # fmt: skip
def test_through_every_protocol(
    scaled: Path, ropectl: Run, kind: type[Fake], changes: dict[str, Any], expected: str
) -> None:
    fake = kind(stock_rows(scaled, **changes))
    with serving(fake) as url:
        code, record = check(ropectl, scaled, url)
    assert (code, record["verdict"]) == (int(expected != "as-meant"), expected)
    names = {FakeOpenAi: "OpenAI-compatible", FakeSglang: "sglang", FakeLlama: "llama-server"}
    evidence = {FakeOpenAi: "unknown", FakeSglang: "read", FakeLlama: "run"}
    assert record["server"]["kind"] == names[kind] and record["server"]["evidence"]["kind"] == evidence[kind]
    assert record["num_compared"] == (FEW_POSITIONS if kind is FakeLlama else LENGTH - 1)


@pytest.mark.parametrize(
    ("changes", "expected"), [*FAULTS[:4], FAULTS[6]], ids=lambda value: value if isinstance(value, str) else ""
)
def test_quantised_weights_raise_no_false_alarm(
    scaled: Path, ropectl: Run, changes: dict[str, Any], expected: str
) -> None:
    noise = 0.1
    with serving(FakeVllm(stock_rows(scaled, noise=noise, **changes))) as url:
        code, record = check(ropectl, scaled, url)
    assert record["verdict"] == expected and code == (expected != "as-meant")
    assert not record["agrees"] and 0.5 * noise < record["noise"] < noise  # the mean of |noise| is 0.8 of its deviation


def test_the_wrong_list(checkpoint: Checkpoint, ropectl: Run) -> None:
    """A server that decides once which list of longrope holds, and one that never leaves the short one."""
    lists = {
        "short_factor": [1 + k / 8 for k in range(8)],
        "long_factor": [1 + k / 2 for k in range(8)],
        "attention_factor": 1.1,
    }
    block = {**YARN, "rope_type": "longrope", **lists}
    model = checkpoint(max_position_embeddings=4 * TRAINED, rope_parameters=block)
    for changes, code, verdict in (
        ({}, 0, "as-meant"),
        ({"short_factor": lists["long_factor"]}, 1, "static-per-server"),
        ({"long_factor": lists["short_factor"]}, 1, "static-per-server"),
    ):
        with serving(FakeVllm(stock_rows(model, **changes))) as url:
            found = check(ropectl, model, url)
        assert (found[0], found[1]["verdict"]) == (code, verdict)
        if verdict != "as-meant":
            side = f"{LENGTH} tokens" if "short_factor" in changes else "up to the trained length"
            assert side in found[1]["readings"][0]["text"]


@pytest.mark.parametrize("kind", [FakeVllm, FakeOpenAi, FakeLlama])
def test_a_server_that_takes_less_is_judged_on_what_fits(scaled: Path, ropectl: Run, kind: type[Fake]) -> None:
    """FakeOpenAi says so only when it refuses."""
    with serving(kind(stock_rows(scaled), context=300)) as url:
        code, record = check(ropectl, scaled, url)
        assert (code, record["verdict"], record["capped_at"]) == (1, "as-meant", 300) and not record["as_meant"]
        assert record["num_tokens"] == 299 and record["num_past_trained_length"]
        code, out, _ = ropectl("verify-runtime", str(scaled), "--endpoint", url, "--length", "299")
    assert code == 0 and (kind is FakeOpenAi or "takes 300 of the 512 tokens" in out)
    with serving(kind(stock_rows(scaled), context=100)) as url:
        code, out, _ = ropectl("verify-runtime", str(scaled), "--endpoint", url, "--length", "400")
    assert code == 1 and "It takes 100 tokens, fewer than were asked for" in out
    assert "No token past the trained length was compared" in out


def test_for_people(scaled: Path, ropectl: Run, tmp_path: Path) -> None:
    with serving(FakeVllm(stock_rows(scaled, rope_type="default"))) as url:
        arguments = ("verify-runtime", str(scaled), "--endpoint", url, "--length", "400")
        code, out, err = ropectl(*arguments, "-o", str(tmp_path / "record.json"))
        assert code == 1 and "vllm computes something else: no scaling at all [unscaled]." in " ".join(out.split())
        assert "is vllm 0.0 (fake)" in err and max(map(len, out.splitlines())) <= 80
        marked = [line for line in out.splitlines() if "this one" in line]
        assert len(marked) == 1 and "no scaling at all" in marked[0]
        markdown = ropectl(*arguments, "--format", "markdown")[1]
        assert "| no scaling at all |" in markdown
    code, _, err = ropectl("report", str(tmp_path / "record.json"), "-o", str(tmp_path / "page.html"))
    assert code == 0, err
    page = (tmp_path / "page.html").read_text()
    assert "no scaling at all" in page and "What a runtime computes of" in page


def refused(ropectl: Run, model: Path, *arguments: str) -> str:
    code, out, err = ropectl("verify-runtime", str(model), *arguments)
    assert code in (1, 2) and "Traceback" not in err and not out
    return f"{code} {err}"


def test_what_is_no_server(scaled: Path, ropectl: Run) -> None:
    url = f"http://127.0.0.1:{unused_port()}"
    said = refused(ropectl, scaled, "--endpoint", url)
    assert said.startswith("2") and f"No server answers at {url}" in said and "--endpoint" in said
    for wrong in ("ftp://host", "localhost:8000", "file:///etc/passwd", "http://", "http://h:x", "http://h/?q=1"):
        assert refused(ropectl, scaled, "--endpoint", wrong).startswith("2")
    said = refused(ropectl, scaled, "--endpoint", "http://me:secret@host")
    assert "secret" not in said and "--api-key-env" in said
    with serving(FakeVllm(stock_rows(scaled), models=(200, b"<html>"))) as url:
        assert "lists no models" in refused(ropectl, scaled, "--endpoint", url)
    with serving(FakeVllm(stock_rows(scaled), models=(307, b""))) as url:
        assert "sends on to" in refused(ropectl, scaled, "--endpoint", url)


def test_a_key_is_read_from_the_environment_and_never_shown(
    scaled: Path, ropectl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "k-123")
    with serving(FakeVllm(stock_rows(scaled), key="k-123")) as url:
        said = refused(ropectl, scaled, "--endpoint", url)
        assert "asks for a key (HTTP 401)" in said and "--api-key-env NAME" in said
        code, record = check(ropectl, scaled, url, "--api-key-env", "MY_KEY", length=200)
        assert code == 0 and "k-123" not in json.dumps(record)
        for wrong in ("k-123", "NOT_THERE", ""):
            said = refused(ropectl, scaled, "--endpoint", url, "--api-key-env", wrong)
            assert said.startswith("2") and "k-123" not in said


def test_the_name_of_the_model(scaled: Path, ropectl: Run) -> None:
    with serving(FakeVllm(stock_rows(scaled))) as url:
        said = refused(ropectl, scaled, "--endpoint", url, "--model", "servd")
        assert said.startswith("2") and "serves no model 'servd'" in said and "Did you mean 'served'" in said
        assert check(ropectl, scaled, url, "--model", "served", length=100)[1]["server"]["model"] == "served"
    several = json.dumps({"data": [{"id": "a"}, {"id": "b"}, {"id": "lora", "parent": "a"}]}).encode()
    with serving(FakeVllm(stock_rows(scaled), models=(200, several))) as url:
        said = refused(ropectl, scaled, "--endpoint", url)
        assert "serves 2 models" in said and "--model" in said and "a, b, lora" in said


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param((200, b"<html>"), "something else than JSON", id="not JSON"),
        pytest.param((200, b"[1, 2]"), "something else than a JSON object", id="a list"),
        pytest.param((200, b"{}"), "returned no log-probabilities", id="nothing in it"),
        pytest.param((200, b'{"choices":[{"logprobs":null}]}'), "returned no log-probabilities", id="no probabilities"),
        pytest.param((200, b'{"choices":[{"logprobs":{"token_logprobs":[null,1]}}]}'), "read 2 tokens", id="too few"),
        pytest.param((200, b'{"usage":{"prompt_tokens":7}}'), "read 7 tokens of a text of", id="truncated"),
        pytest.param((500, b'{"error":{"message":"out of memory"}}'), "HTTP 500): out of memory", id="failed"),
        pytest.param((404, b'{"detail":"Not Found"}'), "HTTP 404): Not Found", id="no such path"),
        pytest.param((413, b"too large"), "HTTP 413): too large", id="too large"),
        pytest.param((403, b""), "asks for a key (HTTP 403)", id="forbidden"),
    ],
)  # fmt: skip
def test_answers_that_say_nothing(scaled: Path, ropectl: Run, answer: tuple[int, bytes], words: str) -> None:
    with serving(FakeVllm(stock_rows(scaled), completions=answer)) as url:
        assert words in " ".join(refused(ropectl, scaled, "--endpoint", url, "--length", "100").split())


def test_a_huge_answer_is_not_read(scaled: Path, ropectl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ropectl.checkpoint.endpoint.client.MAX_ANSWER", 1 << 20)
    with serving(FakeVllm(stock_rows(scaled), completions=(200, b" " * (2 << 20)))) as url:
        assert "more than 1 MiB" in refused(ropectl, scaled, "--endpoint", url)


def test_a_server_that_does_not_answer(scaled: Path, ropectl: Run) -> None:
    class Silent(FakeVllm):
        def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
            import time

            time.sleep(1.0)
            return 200, {}

    with serving(Silent(stock_rows(scaled))) as url:
        said = refused(ropectl, scaled, "--endpoint", url, "--timeout", "0.3")
    assert "did not answer within 0.3 seconds" in said and "--timeout" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "Say which program to ask"),
        ("--endpoint http://h --runtime vllm --python p", "Say one program, not two"),
        ("--runtime vllm", "--runtime needs the Python"),
        ("--endpoint http://h --python p", "--python has no effect with --endpoint"),
        ("--runtime vllm --python p --model x", "--model has no effect with --runtime"),
        ("--runtime vllm --python p --api-key-env X", "--api-key-env has no effect"),
        ("--runtime vllm --python p --timeout 3", "--timeout has no effect"),
        ("--endpoint http://h --reference r", "--reference is for GGUF files"),
        ("--endpoint http://h --timeout 0", "timeout"),
        ("--endpoint http://h --positions 3", "positions"),
    ],
)
def test_options_that_do_not_go_together(scaled: Path, ropectl: Run, words: str, said: str) -> None:
    found = refused(ropectl, scaled, *words.split())
    assert found.startswith("2") and said in " ".join(found.split())
