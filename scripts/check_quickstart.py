"""Compares what the quickstart measured here with the record that README shows: the shape always, numbers where they can agree.

    bash scripts/quickstart.sh --format json | .venv/bin/python scripts/check_quickstart.py

Another Python has another standard library, so another text, and another torch rounds otherwise: then only the shape is compared.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SHOWN = Path(__file__).parent.parent / "docs" / "records" / "quickstart.json"

#: What runs on other machines round to, relative; and passkeys that may fall the other way.
SAME_PERPLEXITY, SAME_PASSKEYS = 1e-3, 1


def shape(value: Any) -> Any:
    """Returns the keys of a record and the lengths of its lists, without the values."""
    if isinstance(value, Mapping):
        return {key: shape(part) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [shape(part) for part in value]
    return None


def differences(shown: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Returns in what the two differ that should be the same, a sentence each."""
    found = []
    for name in ("model", "lengths", "factor", "protocol", "geometry"):
        if shown[name] != here[name]:
            found.append(f"{name}: {shown[name]} is shown, {here[name]} is here")
    if [row["method"] for row in shown["rows"]] != [row["method"] for row in here["rows"]]:
        return [*found, "other methods are compared"]
    manifests = shown["manifest"], here["manifest"]
    is_same_text = len({manifest["tokens_sha256"] for manifest in manifests}) == 1
    is_same_torch = len({manifest["versions"]["torch"] for manifest in manifests}) == 1
    for ours, theirs in zip(shown["rows"], here["rows"], strict=True):
        parts = [{name: row[name] for name in ("perplexity", "tail", "passkey", "reach")} for row in (ours, theirs)]
        if is_same_text and shape(parts[0]) != shape(parts[1]):
            found.append(f"{ours['method']}: records of another form")
        if not (is_same_text and is_same_torch):
            continue
        for point, other in zip(ours["perplexity"], theirs["perplexity"], strict=True):
            if not math.isclose(point["perplexity"], other["perplexity"], rel_tol=SAME_PERPLEXITY):
                found.append(
                    f"{ours['method']}: perplexity {point['perplexity']:.4f} is shown, {other['perplexity']:.4f} is here"
                )
        for entry, other in zip(ours["passkey"], theirs["passkey"], strict=True):
            if abs(entry["correct"] - other["correct"]) > SAME_PASSKEYS:
                found.append(f"{ours['method']}: {entry['correct']} passkeys are shown, {other['correct']} are here")
    print(f"Quickstart: text {'as' if is_same_text else 'not as'} in the README.", file=sys.stderr)
    return found


def main() -> None:
    found = differences(json.loads(SHOWN.read_text()), json.load(sys.stdin))
    if found:
        sys.exit("The README shows another quickstart:\n" + "\n".join(found))


if __name__ == "__main__":
    main()
