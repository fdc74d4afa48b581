"""Checkpoints on the hub: what they consist of, and getting them."""

from __future__ import annotations

from pathlib import Path

from ropectl.checkpoint.files import PICKLE_SUFFIXES
from ropectl.errors import ConfigError


def hub_sizes(name: str, commit: str | None) -> dict[str, int]:
    """Returns the files of a repository and their sizes [bytes].

    Raises:
        ConfigError: If the hub cannot be asked.
    """
    from huggingface_hub import HfApi

    try:
        info = HfApi().model_info(name, revision=commit, files_metadata=True)
    except Exception as error:  # the hub client raises many kinds
        raise _unreachable(name, error) from None
    return {file.rfilename: file.size or 0 for file in info.siblings or ()}


def download(name: str, commit: str | None, allow_pickle: bool) -> Path:
    """Returns the folder of the hub's cache that holds a repository at a commit, fetching what is missing.

    Args:
        name: Hub id.
        commit: The commit whose config was read.
        allow_pickle: Fetch pickles too.

    Raises:
        ConfigError: If the hub cannot be reached.
    """
    from huggingface_hub import snapshot_download

    ignored = None if allow_pickle else [f"*{suffix}" for suffix in PICKLE_SUFFIXES]
    try:
        return Path(snapshot_download(name, revision=commit, ignore_patterns=ignored))
    except Exception as error:  # the hub client raises many kinds
        raise _unreachable(name, error) from None


def _unreachable(name: str, error: Exception) -> ConfigError:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return ConfigError(f"{name} cannot be fetched from the hub: {reason}", "Check the connection, or give a folder.")
