"""sglang: log-probabilities of a prompt through its own ``/generate``; its ``/v1/completions`` does not compute them with ``echo``.

Read: 0.5.23 (``entrypoints/http_server.py``, ``managers/io_struct.py``). Not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ropectl.checkpoint.endpoint.client import Client
from ropectl.checkpoint.endpoint.naming import served_model
from ropectl.checkpoint.endpoint.server import Advance, Server
from ropectl.errors import MeasurementError
from ropectl.records import ReadingEvidence


class SglangServer(Server):
    """sglang."""

    kind = "sglang"
    evidence = ReadingEvidence("read", "0.5.23", "2026-12-01", "entrypoints/http_server.py, managers/io_struct.py")

    @classmethod
    def recognise(cls, client: Client, listed: Sequence[dict[str, Any]], wanted: str | None) -> Server | None:
        said = client.find("/model_info") or client.find("/get_model_info")  # the older name still answers, and warns
        if not (isinstance(said, dict) and "model_path" in said):
            return None
        more = client.find("/server_info") or client.find("/get_server_info")
        version = more.get("version") if isinstance(more, dict) else None
        model, limit = served_model(client.url, listed, wanted)
        return cls(client, str(version or ""), tuple(str(each["id"]) for each in listed), limit, model, {})

    def score(self, ids: Sequence[int], positions: Sequence[int], advance: Advance) -> list[float]:
        request = {
            "input_ids": list(ids), "sampling_params": {"max_new_tokens": 1, "temperature": 0.0},
            "return_logprob": True, "logprob_start_len": 0,
        }  # fmt: skip
        answer = self.client.post("/generate", request)
        advance(len(ids))
        try:
            found = answer["meta_info"]["input_token_logprobs"]
            self.check_count(len(found), len(ids))
            if [entry[1] for entry in found] != list(ids):
                raise MeasurementError(f"{self.client.url} scored other tokens than it was sent.")
            return [float(found[position][0]) for position in positions]
        except (KeyError, IndexError, TypeError, ValueError):
            raise self.no_logprobs() from None
