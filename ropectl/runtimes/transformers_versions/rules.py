"""The rules by which versions of transformers turn a scaling block into a table, as data.

Run, over every family and type of scaling, and replayed by the tests: 4.44.2, 4.48.3, 4.51.3, 4.53.3, 4.55.4, 4.57.6, 5.0.0 and
5.24.0 (``modeling_rope_utils.py``; what single families do differently is in ``traits.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ropectl.records import Problem
from ropectl.runtimes import tables
from ropectl.runtimes.runtime import CheckpointFacts
from ropectl.runtimes.tables import Table
from ropectl.runtimes.views import ORIGINAL, CannotLoadError, View, v4_view, v5_view


@dataclass(frozen=True)
class TransformersRules:
    """The rules by which a version reads a config.

    Attributes:
        version: As shown.
        dialect: Which keys it reads: 4 or 5.
        yarn_reads_original: Whether the ramp of yarn is built on the original length, not on
            ``max_position_embeddings``.
        yarn_overwrites_factor: Whether ``max_position_embeddings`` / original replaces ``factor``.
        yarn_reads_mscale: Whether it knows ``mscale`` and ``mscale_all_dim``.
        yarn_reads_truncate: Whether it knows ``truncate``.
        longrope: ``original``: switches where the block says; ``outer``: where the top level says, else at
            ``max_position_embeddings``; ``short``: never leaves ``short_factor``; ``long``: decides once.
        has_proportional: Whether it knows that type.
    """

    version: str
    dialect: int = 4
    yarn_reads_original: bool = True
    yarn_overwrites_factor: bool = False
    yarn_reads_mscale: bool = True
    yarn_reads_truncate: bool = True
    longrope: str = "outer"
    has_proportional: bool = False

    def view(self, facts: CheckpointFacts) -> View:
        """Returns what this version reads of a config.

        Raises:
            CannotLoadError: If it stops there.
        """
        return v4_view(facts, self.version) if self.dialect == 4 else v5_view(facts, self.version)


_OLDEST = TransformersRules(
    "4.44", yarn_reads_original=False, yarn_reads_mscale=False, yarn_reads_truncate=False, longrope="long"
)
_4_51 = TransformersRules("4.51", yarn_overwrites_factor=True, yarn_reads_truncate=False)
VERSIONS = (
    _OLDEST,
    replace(_OLDEST, version="4.48", longrope="short"),
    _4_51,
    replace(_4_51, version="4.53"),
    replace(_4_51, version="4.55", yarn_reads_truncate=True),
    TransformersRules("4.57"),
    TransformersRules("5.0", dialect=5, longrope="original"),
    TransformersRules("5.24", dialect=5, longrope="original", has_proportional=True),
)


def _yarn(view: View, rules: TransformersRules) -> Table:
    block, original, limit = view.block, view.block.get(ORIGINAL), view.max_positions
    factor, causes = block.get("factor"), []
    length = (original or limit) if rules.dialect == 4 else view.required(ORIGINAL)
    if not rules.yarn_reads_original:
        length = limit
        if original is not None and original != limit:
            causes.append(Problem("original-length-ignored", f"builds the ramp on {limit} tokens, not on {original}"))
    if "factor" not in block:
        raise CannotLoadError("stops: yarn without factor")
    if rules.yarn_overwrites_factor and ORIGINAL in block:
        given, factor = factor, limit / view.required(ORIGINAL)
        if given != factor:
            causes.append(Problem("factor-overwritten", f"factor {factor:g} = {limit}/{original} in place of {given}"))
    if factor is None:
        if rules.dialect == 4:
            raise CannotLoadError("stops: yarn with factor null")
        factor = limit / view.required(ORIGINAL)
    truncate = block.get("truncate", True) if rules.yarn_reads_truncate else True
    if not block.get("truncate", True) and truncate:
        causes.append(Problem("truncate-ignored", "does not read truncate: rounds the ramp"))
    attention = tables.yarn_attention(block, factor, mscales=rules.yarn_reads_mscale)
    attention = (attention[0], (*causes, *attention[1])) if factor != block.get("factor") else attention
    return tables.yarn(view, length, factor, attention, truncate, tuple(causes))


def longrope(view: View, rules: TransformersRules) -> Table:
    """Returns the table of given divisors, switched as the version does."""
    block, outer, limit = view.block, view.outer_original, view.max_positions
    factor, causes = block.get("factor"), []
    inner = block.get(ORIGINAL)
    if rules.longrope == "original":
        length = view.required(ORIGINAL)
        factor = limit / length if factor is None else factor
    else:
        length = outer or limit
        factor = limit / outer if outer else factor
        if outer is None and inner is not None and inner != length:
            causes.append(Problem("original-length-ignored", f"switches at {length} tokens, not at {inner}"))
    kind = rules.longrope
    if kind == "long" and (block.get("attention_factor") is None or (not outer and factor is None)):
        raise CannotLoadError("stops: longrope without factor and attention_factor")
    attention = block.get("attention_factor")
    if attention is None:
        if factor is None:
            raise CannotLoadError("stops: longrope without factor")
        attention = tables.su_attention(factor, length)
    is_long: Callable[[int], bool] = lambda seq_len: seq_len > length  # noqa: E731
    if kind == "long":
        decided = limit > length if outer else factor is not None and factor > 1
        is_long = lambda seq_len: decided  # noqa: E731
        causes.append(Problem("static-per-model", f"takes the {'long' if decided else 'short'} list at every length"))
    if kind == "short":
        is_long = lambda seq_len: False  # noqa: E731
        causes = [Problem("static-per-model", "takes the short list at every length")]
    read_length = Problem("attention-factor-misread", f"takes factor {factor} and {length} tokens for it")
    return tables.longrope(view, is_long, float(attention), tuple(causes), (read_length,))


_TYPES: Mapping[str | None, Callable[[View, TransformersRules], Table]] = {
    "default": lambda view, rules: tables.default(view),
    "linear": lambda view, rules: tables.linear(view),
    "dynamic": lambda view, rules: tables.dynamic(view),
    "llama3": lambda view, rules: tables.llama3(view, low_first=True),
    "yarn": _yarn,
    "longrope": longrope,
    "proportional": lambda view, rules: (
        tables.proportional(view, reads_factor=True) if rules.has_proportional else tables.unknown(view)
    ),
}


def standard_table(view: View, rules: TransformersRules) -> Table:
    """Returns what most families compute: the table that ``modeling_rope_utils`` makes of the block.

    Raises:
        CannotLoadError: If it stops.
    """
    handler = _TYPES.get(view.rope_type)
    return handler(view, rules) if handler else tables.unknown(view)
