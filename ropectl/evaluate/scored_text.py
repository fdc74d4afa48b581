"""The units of text that are scored, documents or windows of them: how long windows are, and what to say beforehand."""

from __future__ import annotations

from collections.abc import Sequence

from ropectl.data.sources import document_rule
from ropectl.data.tokens import DocumentSet
from ropectl.data.units import counted, scored_units
from ropectl.errors import ConfigError, DataError
from ropectl.evaluate.shared_config import DEFAULT_WINDOWS, TextConfig
from ropectl.records import FEW_DOCUMENTS


def window_tokens(config: TextConfig, lengths: Sequence[int], document_tokens: int | None = None) -> int | None:
    """Returns the tokens of the windows that documents are cut into; None where they stay whole.

    Args:
        config: The settings.
        lengths: Wanted context lengths [tokens].
        document_tokens: Most tokens that a protocol takes of each document; None for the longest length.

    Raises:
        ConfigError: If no wanted length fits into a window.
    """
    size = (document_tokens or max(lengths)) if isinstance(config.split, str) else config.split
    if size is not None and size < min(lengths):
        raise ConfigError(
            f"split = {size} is less than the shortest length, {min(lengths)}: no length fits into such a window.",
            f"Use --split {max(lengths)} or more, --split auto, or lengths of at most {size}.",
        )
    return size


def text_notes(documents: DocumentSet, lengths: Sequence[int], config: TextConfig) -> list[str]:
    """Returns notes on lengths that nothing scored has, and on documents that could be cut into windows.

    Raises:
        DataError: If there are such lengths, and that is an error.
    """
    size = config.split if isinstance(config.split, int) else None
    notes = missing_lengths_notes(documents, lengths, config.text, config.strict, size)
    return [*notes, *_split_offer(documents, config)]


def missing_lengths_notes(
    documents: DocumentSet, lengths: Sequence[int], text: str, strict: bool = False, size: int | None = None
) -> list[str]:
    """Returns notes on the lengths that no document has, or no window.

    Args:
        documents: What is scored.
        lengths: Wanted context lengths [tokens].
        text: Its source.
        strict: Whether such lengths are an error.
        size: Tokens that windows were asked to have; None where documents stay whole, or the longest length decides.

    Raises:
        DataError: If there are such lengths, and that is an error.
    """
    missing = [length for length in lengths if length > documents.length]
    too_long = [length for length in missing if size is not None and length > size]
    absent = missing[: len(missing) - len(too_long)]
    notes = []
    if absent:
        if strict:
            raise DataError(
                f"{text} has no document of {_listed(absent)} tokens: the longest that is scored has {documents.length}.",
                "Give longer text: --text FILE, shorter lengths, or leave out --strict.",
            )
        notes.append(f"{text} has no document of {_listed(absent)} tokens: perplexity there is n/a.")
    elif size is not None and documents.split is not None and documents.split < size:
        notes.append(f"{text} has no document of {size} tokens: it is cut into windows of {documents.split}.")
    if too_long:
        longer = f"--split {max(lengths)}, or --split auto"
        if strict:
            raise DataError(
                f"A window of {size} tokens (--split {size}) holds no {_listed(too_long)}.",
                f"Use {longer}, shorter lengths, or leave out --strict.",
            )
        notes.append(
            f"A window of {size} tokens (--split {size}) holds no {_listed(too_long)}: perplexity there is n/a. To measure "
            f"it: {longer}"
        )
    return notes


def few_units_notes(documents: DocumentSet, text: str) -> list[str]:
    """Returns a note where there is too little text for a verdict: windows of several documents count as those."""
    count, num_documents = len(documents.documents), len(set(documents.clusters))
    of_documents = 1 < num_documents < count
    if (num_documents if of_documents else count) >= FEW_DOCUMENTS:
        return []
    units, few = scored_units(count, documents.split, documents.clusters), "few documents" if of_documents else "few"
    return [f"{units} of {text} scored, at {documents.length} tokens: {few} for a verdict (at least {FEW_DOCUMENTS})."]


def _listed(lengths: Sequence[int]) -> str:
    return ", ".join(map(str, lengths))


def _split_offer(documents: DocumentSet, config: TextConfig) -> list[str]:
    """Returns a note that few documents could be cut into more windows, which says what a document is."""
    possible, count = documents.possible, len(documents.documents)
    if possible is None or possible.count <= count:
        return []
    rule = f" ({rule})" if (rule := document_rule(config.text)) else ""
    if documents.num_seen == 1:
        subject = f"{config.text} is one document{rule}: it"
    else:
        has, they = ("has", "it") if count == 1 else ("have", "they")
        subject = f"{counted(count, 'document')} of {config.text} {has} {documents.length} tokens{rule}: {they}"
    windows = f"{'at least ' if possible.is_least else ''}{possible.count} windows of {possible.size} tokens"
    capped = config.documents is not None and config.documents < possible.count
    more = f" --documents {min(possible.count, DEFAULT_WINDOWS)}" if capped else ""
    return [f"{subject} would give {windows}: --split auto{more}"]
