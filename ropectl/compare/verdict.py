"""The method that a comparison prefers, how far it reaches in plain sentences, and the limits that it does not keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ropectl.compare.differences import picked_index
from ropectl.evaluate.judging.verdict_sentences import doubt
from ropectl.evaluate.judging.verdicts import short_delta, short_lengths
from ropectl.lengths import lengths_text
from ropectl.records import NO_CHANGE, MethodRow, Pick, Reach
from ropectl.rope.method import short_spec


def pick_method(rows: Sequence[MethodRow], trained_length: int, clusters: Sequence[int] | None = None) -> Pick | None:
    """Returns the row with the longest ``uses``, then ``models``, then the smallest ``short_delta``, and why it is that one.

    Where two are equally long, the one that may turn out longer goes first. None if nothing was measured that could decide.

    Args:
        rows: All rows; the first is the unscaled model.
        trained_length: L [tokens].
        clusters: The document of each scored unit; a document of its own by default.
    """
    candidates = [
        row for row in rows if not row.errors and (row.reach.uses is not None or row.reach.models is not None)
    ]
    if not candidates:
        return None
    best = min(candidates, key=lambda row: (*_reach_rank(row), _price(row)))
    senses = [sense for sense in ("uses", "models") if getattr(best.reach, sense) is not None]
    reasons = [f"{sense} {_reach_text(best.reach, sense)}: {_rank(sense, best, candidates)}" for sense in senses]
    if best.short_delta is not None:
        if abs(best.short_delta) < NO_CHANGE:
            change = "does not change"
        elif best.short_delta < 0:
            change = f"falls by {-best.short_delta:.1%} or more"
        else:
            change = f"rises by {best.short_delta:.1%} at worst"
        at = short_lengths(best.perplexity, rows[0].perplexity, trained_length)
        reasons.append(f"perplexity at {lengths_text(at)} tokens {change}" if at else f"perplexity {change}")
    tied = [
        index
        for index, row in enumerate(rows)
        if row in candidates
        and row is not best
        and _reach_rank(row) == _reach_rank(best)
        and not _is_dearer(row, best, trained_length, clusters)
    ]
    return Pick(best.model, best.method, reasons, best.training.id if best.training else None, tied)


def _reach_rank(row: MethodRow) -> tuple[int, ...]:
    """Returns what rows are ordered by before their price, least first."""
    reach = row.reach
    lengths = (reach.uses, reach.uses_possible, reach.models, reach.models_possible)
    return tuple(-(length or 0) for length in lengths)


def _price(row: MethodRow) -> float:
    return row.short_delta if row.short_delta is not None else 0.0


def _is_dearer(row: MethodRow, best: MethodRow, trained_length: int, clusters: Sequence[int] | None) -> bool:
    """Returns whether a row's perplexity up to the trained length is told apart from the best row's, at its worst."""
    difference = short_delta(row.perplexity, best.perplexity, trained_length, clusters)
    if difference is None:
        return _price(row) > _price(best)
    return bool(difference.told_apart)


def _reach_text(reach: Reach, sense: str) -> str:
    length, possible = getattr(reach, sense), getattr(reach, f"{sense}_possible")
    if not reach.is_open(sense):
        return _tokens(length)
    return f"{length} tokens, and up to {possible} not resolved" if length else f"not resolved up to {possible} tokens"


def _tokens(length: int) -> str:
    return f"{length} tokens" if length else "no evaluated length"


def _rank(sense: str, best: MethodRow, rows: Sequence[MethodRow]) -> str:
    values = [getattr(row.reach, sense) or 0 for row in rows]
    own = getattr(best.reach, sense) or 0
    if own < max(values):
        return f"{max(values)} is the longest"
    ties = values.count(own) - 1
    return "the longest" if not ties else f"the longest, shared with {ties} other{'s' if ties > 1 else ''}"


def comparison_verdict(rows: Sequence[MethodRow], pick: Pick | None, target_length: int) -> list[str]:
    """Returns how far the pick reaches of the context asked for, in each sense, and whether another reaches it all.

    Args:
        rows: All rows.
        pick: The preferred one; None if nothing could decide.
        target_length: The context that the comparison is about [tokens].
    """
    index = picked_index(rows, pick)
    if index is None:
        return ["Nothing was measured that could decide between the methods."]
    row = rows[index]
    name = short_spec(row.method) + (", tuned" if row.training else "")
    if row.model != rows[0].model:
        name = f"{row.model}, {name}"
    sentences = [
        f"Of the {target_length} tokens asked for, the pick ({name}) " + "; ".join(_senses(row, target_length)) + "."
    ]
    measured = [each for each in rows if each.reach.uses is not None]
    if measured and all((each.reach.uses or 0) < target_length for each in measured):
        longest = max(max((entry.length for entry in each.passkey), default=0) for each in measured)
        may = any((each.reach.uses_possible or 0) >= target_length for each in measured)
        what = "that any method uses them all is not resolved" if may else "no method uses them all"
        sentences.append(f"Retrieval: {'no method was measured there' if longest < target_length else what}.")
    return sentences


def _senses(row: MethodRow, target_length: int) -> list[str]:
    reach = row.reach
    computes = target_length if reach.computes is None else min(reach.computes, target_length)
    senses = [f"computes {computes} (rotations seen in training)"]
    for sense, meaning in (("models", "loss as low as the unscaled model's"), ("uses", "passkeys retrieved")):
        length = getattr(reach, sense)
        if length is None:
            senses.append(f"{sense}: not judged")
            continue
        possible = getattr(reach, f"{sense}_possible")
        is_open = f", up to {possible} not resolved" if reach.is_open(sense) else ""
        none = "nothing for certain" if is_open else "none of the lengths"
        senses.append(f"{sense} {length or none} ({meaning}){is_open}")
    return senses


def unmet_gates(record: Mapping[str, Any]) -> list[str]:
    """Returns one sentence for each limit that the pick of a comparison does not keep.

    Only lengths up to the context that the comparison is about are judged.

    Args:
        record: The comparison as JSON values; its settings name the limits.
    """
    config, pick = record["manifest"]["config"], record["pick"]
    limits = {name: config[name] for name in ("fail_above", "min_accuracy", "max_short_regression")}
    if all(limit is None for limit in limits.values()):
        return []
    if pick is None:
        return ["No method could be picked, so no limit was kept."]
    chosen = (pick["model"], pick["method"], pick["training"])
    row = next(r for r in record["rows"] if (r["model"], r["method"], r["training"] and r["training"]["id"]) == chosen)
    of_model = "" if row["model"] == record["rows"][0]["model"] else f" of {row['model']}"
    name = f"The pick {short_spec(row['method'])}{', tuned,' if row['training'] else ''}{of_model}"
    return list(_unmet(row, name, record["target_length"], limits))


def _unmet(row: Mapping[str, Any], name: str, target_length: int, limits: Mapping[str, float | None]) -> Iterator[str]:
    above, accuracy, rise = limits["fail_above"], limits["min_accuracy"], limits["max_short_regression"]
    for point in row["perplexity"]:
        value = point["perplexity"]
        if above is not None and value is not None and value > above and point["context_length"] <= target_length:
            yield (
                f"{name} has perplexity {value:.4g} at {point['context_length']} tokens: above --fail-above {above:g}"
                f"{doubt(point, above, '.4g')}."
            )
    for entry in row["passkey"]:
        if accuracy is not None and entry["accuracy"] < accuracy and entry["length"] <= target_length:
            yield (
                f"{name} retrieves {entry['correct']} of {entry['trials']} passkeys at {entry['length']} tokens: "
                f"below --min-accuracy {accuracy:g}{doubt(entry, accuracy, '.0%')}."
            )
    delta = row["short_delta"]
    if rise is not None and delta is None:
        yield (
            f"{name} has no perplexity to compare with the unscaled model's at a length up to the trained one: "
            f"--max-short-regression {rise:g} cannot be kept."
        )
    if rise is not None and delta is not None and delta > rise:
        interval = {"ci_low": row.get("short_delta_ci_low"), "ci_high": row.get("short_delta_ci_high")}
        yield (
            f"{name} raises perplexity by {delta:.2%} at a length up to the trained one: above --max-short-regression {rise:g}"
            f"{doubt(interval, rise, '.2%')}."
        )
