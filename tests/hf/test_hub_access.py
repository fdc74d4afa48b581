"""Without a network the hub's cache answers at once, and a model that it lacks is one clear message."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ropectl.hf import hub_access

pytestmark = pytest.mark.process

#: The domain is reserved: it never has an address (RFC 2606).
NOWHERE = "https://hub.invalid"

PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name not in (*PROXIES, "HF_HUB_OFFLINE")}
    env |= {"HF_ENDPOINT": NOWHERE, "HF_HOME": str(folder), "HF_HUB_CACHE": str(folder / "hub")}
    return subprocess.run([sys.executable, "-m", "ropectl", *arguments], capture_output=True, text=True, env=env)


def test_what_is_not_in_the_cache_is_one_message(tmp_path: Path) -> None:
    """There are no retries for half a minute."""
    done = run(tmp_path, "inspect", "org/model")
    assert done.returncode == 2 and not done.stdout
    assert (
        "'org/model' is not a folder here" in done.stderr and "hub.invalid cannot be reached from here" in done.stderr
    )
    assert "Retry" not in done.stderr and len(done.stderr.splitlines()) == 2


def test_what_is_in_the_cache_is_used(tmp_path: Path) -> None:
    place = tmp_path / "hub" / "models--org--model"
    commit = "0123456789abcdef0123456789abcdef01234567"
    (place / "snapshots" / commit).mkdir(parents=True)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(commit)
    config = {"model_type": "llama", "head_dim": 64, "rope_theta": 10000.0, "max_position_embeddings": 2048}
    config |= {"hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100}
    (place / "snapshots" / commit / "config.json").write_text(json.dumps(config))
    done = run(tmp_path, "inspect", "org/model", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["geometry"]["original_max_position_embeddings"] == 2048


def test_nothing_is_concluded_behind_a_proxy_or_with_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://localhost:1")
    assert hub_access.hub_host() == "localhost" and not hub_access.stay_offline_without_network()
    monkeypatch.setenv("HF_ENDPOINT", NOWHERE)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    assert not hub_access.stay_offline_without_network()
