"""Servers that speak the protocols of vLLM, sglang and llama-server, and compute what a test tells them to.

What they compute is stock transformers with a config of the test's own: nothing of ropectl's idea of a reading.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

#: Log-probabilities of all next tokens after each token of a sequence.
Rows = Callable[[Sequence[int]], Any]


def stock_rows(folder: Path, noise: float = 0.0, length: int | None = None, **changes: Any) -> Rows:
    """What stock classes compute of a checkpoint whose config is changed.

    Args:
        folder: The checkpoint.
        noise: Standard deviation of what is added to each log-probability, as quantised weights would [nats].
        length: ``max_position_embeddings``, where the test changes it.
        changes: Keys of ``rope_parameters``.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(folder)
    config.rope_parameters = {**config.rope_parameters, **changes}
    config.max_position_embeddings = length or config.max_position_embeddings
    model = AutoModelForCausalLM.from_pretrained(folder, config=config).eval()
    chooser = torch.Generator().manual_seed(1)
    done: dict[tuple[int, ...], Any] = {}

    @torch.no_grad()
    def rows(ids: Sequence[int]) -> Any:
        key = tuple(ids)
        if key not in done:
            found = model(torch.tensor([list(ids)])).logits[0].double().log_softmax(-1)
            done[key] = found + noise * torch.randn(found.shape, generator=chooser, dtype=found.dtype)
        return done[key]

    return rows


class Fake:
    """What a fake server knows.

    Args:
        rows: What it computes.
        context: The most tokens that it takes.
        key: The key that it asks for.
        **answers: By path, what it says whatever is asked: bytes, or a status.
    """

    name = "served"

    def __init__(self, rows: Rows, context: int = 4096, key: str | None = None, **answers: Any) -> None:
        self.rows, self.context, self.key, self.answers = rows, context, key, answers
        self.asked: list[str] = []

    def get(self, path: str) -> Any:
        """The answer to a question about the server; None for 404."""
        if path == "/v1/models":
            return {"object": "list", "data": [self.card()]}
        return None

    def card(self) -> dict[str, Any]:
        return {"id": self.name, "object": "model"}

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        raise NotImplementedError

    def scored(self, ids: list[int]) -> list[float]:
        rows = self.rows(ids)
        return [rows[k][token].item() for k, token in enumerate(ids[1:])]


class FakeOpenAi(Fake):
    """``/v1/completions`` with ``echo``, and nothing that says what it is."""

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        ids = body["prompt"]
        if path != "/v1/completions" or body["model"] != self.name:
            return 404, {"error": {"message": "The model does not exist."}}
        if len(ids) + body["max_tokens"] > self.context:
            text = f"This model's maximum context length is {self.context} tokens. However, your prompt contains {len(ids)} input tokens."
            return 400, {"error": {"message": text, "code": 400}}
        assert body["echo"] and body["max_tokens"] == 1
        logprobs = [None, *self.scored(ids), -1.0]
        usage = {"prompt_tokens": len(ids), "completion_tokens": 1}
        return 200, {"choices": [{"text": "?", "logprobs": {"token_logprobs": logprobs}}], "usage": usage}


class FakeVllm(FakeOpenAi):
    def get(self, path: str) -> Any:
        return {"version": "0.0 (fake)"} if path == "/version" else super().get(path)

    def card(self) -> dict[str, Any]:
        return {**super().card(), "owned_by": "vllm", "max_model_len": self.context}


class FakeSglang(Fake):
    def get(self, path: str) -> Any:
        known = {"/model_info": {"model_path": "somewhere"}, "/server_info": {"version": "0.0 (fake)"}}
        return known.get(path) or super().get(path)

    def card(self) -> dict[str, Any]:
        return {**super().card(), "max_model_len": self.context}

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        assert path == "/generate" and body["return_logprob"] and body["logprob_start_len"] == 0
        ids = body["input_ids"]
        found = [[value, token, None] for value, token in zip([None, *self.scored(ids)], ids, strict=True)]
        return 200, {"text": "?", "meta_info": {"prompt_tokens": len(ids), "input_token_logprobs": found}}


class FakeLlama(Fake):
    """Probabilities of generated tokens only; some tokens are held back, as those that end inside a character are."""

    held_back = frozenset(range(7, 1000, 50))

    def get(self, path: str) -> Any:
        if path == "/props":
            return {"default_generation_settings": {"n_ctx": self.context}, "model_ftype": "Q8_0", "build_info": "b1"}
        return super().get(path)

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        ids, ((token, _),) = body["prompt"], body["logit_bias"]
        if len(ids) >= self.context:
            return 400, {
                "error": {
                    "message": f"request ({len(ids)} tokens) exceeds the available context size ({self.context} tokens)"
                }
            }
        usage = {"prompt_tokens": len(ids)}
        if token in self.held_back:
            return 200, {"choices": [{"text": "", "logprobs": None}], "usage": usage}
        row = self.rows(ids)[-1]
        best = row.argsort(descending=True)[: body["n_probs"]].tolist()
        top = [{"id": k, "logprob": row[k].item()} for k in best]
        entry = {"id": token, "logprob": row[token].item(), "top_logprobs": top}
        return 200, {"choices": [{"text": "?", "logprobs": {"content": [entry]}}], "usage": usage}


@contextmanager
def serving(fake: Fake) -> Iterator[str]:
    """Yields the address of a server that answers as it is told."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            self.answer(lambda: (200, fake.get(self.path)))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer(lambda: fake.post(self.path, body))

        def answer(self, ask: Callable[[], tuple[int, Any]]) -> None:
            fake.asked.append(self.path)
            if fake.key is not None and self.headers["Authorization"] != f"Bearer {fake.key}":
                self.send(401, b'{"error":{"message":"Invalid API key"}}')
                return
            said = fake.answers.get(self.path.rpartition("/")[2])
            if said is not None:
                self.send(*said)
                return
            status, value = ask()
            self.send(404 if value is None else status, json.dumps(value).encode())

        def send(self, status: int, data: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that hangs up is part of a test."""

    server = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def unused_port() -> int:
    """A port on which nobody listens."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        return int(server.server_address[1])
