"""Which of the models that a server lists is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ropectl.errors import ConfigError
from ropectl.names import near_names, shown_names


def served_model(url: str, listed: Sequence[dict[str, Any]], wanted: str | None) -> tuple[str, int | None]:
    """Returns a model's name, and the most tokens that the server says it takes; None if it says nothing.

    Args:
        url: The server, for messages.
        listed: The models that it lists.
        wanted: The name that was asked for; None for the only one.

    Raises:
        ConfigError: If it serves no such model, or several and none was named.
    """
    models = {str(each["id"]): each for each in listed}
    bases = [name for name, each in models.items() if not each.get("parent")]  # adapters name their base
    served = f"It serves: {shown_names(list(models), most=8)}"
    if wanted is None and len(bases) != 1:
        raise ConfigError(f"{url} serves {len(bases)} models.", f"Name one with --model. {served}")
    if wanted is not None and wanted not in models:
        near = near_names(wanted, models)
        raise ConfigError(
            f"{url} serves no model {wanted!r}.", f"Did you mean {near[0]!r}? {served}" if near else served
        )
    name = bases[0] if wanted is None else wanted
    limit = models[name].get("max_model_len")
    return name, limit if isinstance(limit, int) and limit > 0 else None
