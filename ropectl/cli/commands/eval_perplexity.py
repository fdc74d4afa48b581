"""``ropectl eval-perplexity``."""

from __future__ import annotations

from typing import Annotated

import typer

from ropectl.cli import completion, options

_PROTOCOL = "Protocol"


def eval_perplexity(
    model: options.Model = None,
    method: options.MethodSpec = None,
    factor: options.Factor = None,
    target_length: options.TargetLength = None,
    lengths: options.Lengths = None,
    text: options.Text = None,
    documents: options.Documents = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="prefix (first N tokens, default), sliding (windows of N), overlapping (all of each window), tail (the same "
            "last tokens, given N) or key-tokens (those that gain from a long context).",
            rich_help_panel=_PROTOCOL,
            autocompletion=completion.protocols,
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="pi, yarn or longlora: measure as they did (default: none).",
            rich_help_panel=_PROTOCOL,
            autocompletion=completion.names_in("ropectl.evaluate.perplexity.presets", "PRESETS"),
        ),
    ] = None,
    stride: Annotated[
        str | None,
        typer.Option(
            metavar="S",
            help="Tokens from one window to the next (default 256, or half the shortest length).",
            rich_help_panel=_PROTOCOL,
        ),
    ] = None,
    document_tokens: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Most tokens of a document in moving windows (default twice the longest length).",
            rich_help_panel=_PROTOCOL,
        ),
    ] = None,
    short_context: Annotated[
        str | None,
        typer.Option(
            metavar="K",
            help="Short context that key tokens are chosen against (default the trained length, or half of N).",
            rich_help_panel=_PROTOCOL,
        ),
    ] = None,
    key_model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Model that chooses the key tokens (default the measured one).",
            rich_help_panel=_PROTOCOL,
            autocompletion=completion.models,
        ),
    ] = None,
    tolerance: Annotated[
        str | None,
        typer.Option(
            metavar="NATS", help="tail: loss that still counts as modelled (default 0.02).", rich_help_panel=_PROTOCOL
        ),
    ] = None,
    fail_above: Annotated[
        str | None,
        typer.Option(metavar="PPL", help="Exit with code 3 if a perplexity is above this.", rich_help_panel=_PROTOCOL),
    ] = None,
    batch_size: options.BatchSize = None,
    bos: options.Bos = None,
    prefill_chunk: options.PrefillChunk = None,
    layers: options.Layers = None,
    replace: options.Replace = None,
    revision: options.Revision = None,
    original_length: options.OriginalLength = None,
    dtype: options.Dtype = None,
    device: options.Device = None,
    attention: options.Attention = None,
    trust_remote_code: options.TrustRemoteCode = None,
    allow_pickle: options.AllowPickle = None,
    out: options.Out = None,
    overwrite: options.Overwrite = False,
    config: options.ConfigFile = None,
    print_config: options.PrintConfig = False,
    format: options.TableFormat = "human",
) -> None:
    """Measure perplexity by context length; all lengths in one pass where method and protocol allow it.

    Lengths run from half the trained one to the target, unless --length names them.

    Example: ropectl eval-perplexity ./my-model -m yarn --factor 4 --length 2k..16k --text book.txt

    Example: ropectl eval-perplexity ./my-model -m yarn --factor 4 --preset yarn --length 2k..16k

    Example: ropectl eval-perplexity ./my-model -m yarn --factor 4 --protocol tail --length 512..2k
    """
    given = locals()  # the options are the settings, under the same names
    from ropectl.evaluate.config import PerplexityConfig

    settings = options.resolve_config(PerplexityConfig, config, given, eval_perplexity)

    from ropectl.evaluate.perplexity.presets import apply_preset

    settings = apply_preset(settings)

    from ropectl.cli import output
    from ropectl.cli.progress import BarReporter

    if print_config:
        output.print_json(settings.model_dump(mode="json"))
        return
    from ropectl.cli.gates import gate_failed
    from ropectl.evaluate.perplexity.evaluation import evaluate_perplexity
    from ropectl.evaluate.verdicts import limit_messages
    from ropectl.report.views import PERPLEXITY

    output.check_one_process("eval-perplexity")
    output.check_new(out, overwrite)
    output.quiet_libraries()
    with BarReporter() as reporter:
        record = evaluate_perplexity(settings, reporter)
    output.present(record, PERPLEXITY, format, out)
    if settings.fail_above is not None and (messages := limit_messages(record["points"], settings.fail_above)):
        gate_failed(messages)
