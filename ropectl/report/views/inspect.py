"""The view of ``inspect``: what the formulas say about a method, and one line for each rotary pair."""

from __future__ import annotations

from ropectl.records import InspectionRecord
from ropectl.report.document import Part, Row, Sentence, Table, View, cells, columns
from ropectl.report.graphics import chosen
from ropectl.report.tables.derived import derived_rows
from ropectl.report.tables.runtimes import runtime_parts
from ropectl.rope.geometry import describe_rotary_dim
from ropectl.rope.method import short_spec

#: More pairs than this are thinned out in the table; JSON always has all of them.
MAX_ROWS = 16

#: Derived values that sentences of their own say.
_SAID = ("attention_factor", "base", "trained_length")


def inspection_parts(record: InspectionRecord) -> list[Part]:
    """Returns the facts, then a line for each rotary pair (at most 16 of them, evenly chosen)."""
    return [
        *map(Sentence, inspection_facts(record)),
        pairs_table(record, MAX_ROWS),
        *(runtime_parts(record.runtimes) if record.runtimes else []),
        *(Sentence(f"warning: {warning}") for warning in record.warnings),
    ]


def inspection_facts(record: InspectionRecord) -> list[str]:
    """Returns the geometry, the model, the method and what follows from them, a line each."""
    geometry, reach = record.geometry, record.reach
    turning, critical = geometry.num_turning or len(record.inv_freq), record.critical_dimension
    base = record.rope_parameters.get("rope_theta", geometry.rope_theta)
    return [
        f"{describe_rotary_dim(geometry.to_json())}, rope_theta {geometry.rope_theta:g}, "
        f"trained length {geometry.original_max_position_embeddings}",
        *_model_facts(record),
        f"method {short_spec(record.method)}, attention factor {record.attention_factor:.6f}",
        *([f"rope_theta becomes {base:.1f}"] if base != geometry.rope_theta else []),
        f"critical pairs (never a full turn in training): {critical} to {turning - 1}"
        if critical < turning
        else "no critical pairs",
        *(f"{name} {text}" for name, text in derived_rows(record.derived, said=_SAID)),
        f"computes up to {'any length' if reach is None else f'{reach} tokens'} with rotations seen in training",
    ]


def _model_facts(record: InspectionRecord) -> list[str]:
    """Returns what only a config says: its scaling, the layers that are meant, and their attention window."""
    if record.model is None:
        return []
    lines = [
        f"{record.model}: scaling {short_spec(record.existing or 'none')}, declares {record.max_position_embeddings} tokens, "
        f"{record.pairing} pairs"
    ]
    if record.layer_type:
        others = [kind for kind in record.layer_types or () if kind != record.layer_type]
        lines.append(f"layers {record.layer_type}; not looked at: {', '.join(others) or 'none'}")
    if record.window:
        lines.append(f"attention window {record.window} tokens")
    return lines


def pairs_table(record: InspectionRecord, most: int | None = None) -> Table:
    """Returns frequency, wavelength, turns and divisor of rotary pairs.

    Args:
        record: The inspection.
        most: Show so many of them at most, evenly chosen, in few digits; None for all, in six digits.
    """
    count = len(record.inv_freq)
    wavelengths, turns, divisors = (",.2f", ".3f", ".4f") if most else (",.6g", ",.6g", ",.6g")
    rows = []
    for pair in chosen(count, most or count):
        wavelength, divisor = record.wavelengths[pair], record.divisors[pair]
        texts = (
            f"{record.inv_freq[pair]:.6g}",
            "stands still" if wavelength is None else f"{wavelength:{wavelengths}}",
            f"{record.rotations[pair]:{turns}}",
            "-" if divisor is None else f"{divisor:{divisors}}",
        )
        rows.append(Row(f"{pair:>{len('pair')}}", cells(texts)))
    heads = columns(("inv_freq [rad/token]", "wavelength [tokens]", "turns in L", "divisor"))
    return Table("", "pair", heads, rows, name="Rotary pairs")


VIEW = View(inspection_parts, "What the rotary embedding of {model} computes", is_headed=False)
