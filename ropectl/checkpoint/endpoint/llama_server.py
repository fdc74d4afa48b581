"""llama-server: gives probabilities of generated tokens only, so each compared token is generated.

Run: the server of xllamacpp 2026.10.11549.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ropectl.checkpoint.endpoint.client import Client
from ropectl.checkpoint.endpoint.naming import served_model
from ropectl.checkpoint.endpoint.server import Advance, Server
from ropectl.errors import MeasurementError
from ropectl.records import ReadingEvidence
from ropectl.runtimes.probes.llamacpp_scorer import Scorer, ScoringError


class LlamaServer(Server):
    """llama.cpp's server."""

    kind = "llama-server"
    evidence = ReadingEvidence("run", "2026.10.11549", "2026-12-01", "the server of xllamacpp, over HTTP")
    one_by_one = True

    @classmethod
    def recognise(cls, client: Client, listed: Sequence[dict[str, Any]], wanted: str | None) -> Server | None:
        said = client.find("/props")
        if not (isinstance(said, dict) and "default_generation_settings" in said):
            return None
        model, _ = served_model(client.url, listed, wanted)
        context = said["default_generation_settings"].get("n_ctx")
        meta = next((each.get("meta") for each in listed if each.get("id") == model), None) or {}
        kind = said.get("model_ftype") or meta.get("ftype")
        details = {"weights": str(kind)} if kind else {}
        limit = context if isinstance(context, int) and context > 0 else None
        names = tuple(str(each["id"]) for each in listed)
        return cls(client, str(said.get("build_info") or ""), names, limit, model, details)

    def score(self, ids: Sequence[int], positions: Sequence[int], advance: Advance) -> list[float]:
        def ask(request: dict[str, Any]) -> dict[str, Any]:
            return self.client.post("/v1/completions", {"model": self.model, **request})

        scorer, found, done = Scorer(ask, list(ids)), [], 0
        try:
            for position in positions:
                found.append(scorer.score(position))
                advance(position - done)
                done = position
        except ScoringError as error:
            raise MeasurementError(f"{self.client.url}: {error}") from None
        except (KeyError, IndexError, TypeError, ValueError):
            raise self.no_logprobs() from None
        return found
