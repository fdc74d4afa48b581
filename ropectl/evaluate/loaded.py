"""A model under a scaling method, for notebooks and other programs."""

from __future__ import annotations

from typing import Any

from ropectl.evaluate.setup import Setup
from ropectl.evaluate.shared_config import ModelConfig
from ropectl.hf.model.patch import apply_rope
from ropectl.setting_types import make_config


def load_patched(
    model: str, method: str | None = None, *, seq_len: int | None = None, **options: Any
) -> tuple[Any, Any]:
    """Returns a model under a method, and its tokenizer.

    Args:
        model: Folder, hub id, ``.gguf`` file, adapter folder or ``builtin:tiny``.
        method: Method spec; the checkpoint's own scaling where it is None.
        seq_len: What a length-dependent method is frozen at [tokens].
        options: Further settings of :class:`~ropectl.evaluate.shared_config.ModelConfig`, such as ``dtype`` and ``device``.

    Raises:
        RopectlError: If it cannot be loaded, or the method does not fit.
    """
    setup = Setup.of(make_config(ModelConfig, {"model": model, **options}))
    scaling = setup.method(method)
    tokenizer, loaded = setup.tokenizer, setup.model
    apply_rope(loaded, scaling, geometry=setup.geometry, seq_len=seq_len, layers=setup.source.rope.layer_type)
    return loaded, tokenizer
