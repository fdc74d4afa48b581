"""``ropectl eval-perplexity``."""

from __future__ import annotations

from typing import Annotated

import typer

from ropectl.cli import options


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
        typer.Option(help="prefix (first N tokens of each document, default) or tail (the same last tokens, given N)."),
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
    format: options.OutputFormat = options.Format.human,
) -> None:
    """Measure perplexity by context length; all lengths in one pass where the method allows it.

    Example: ropectl eval-perplexity ./my-model -m yarn --factor 4 --length 2k..16k --text book.txt
    """
    given = locals()  # the options are the settings, under the same names
    from ropectl.evaluate.config import PerplexityConfig

    settings = options.resolve_config(PerplexityConfig, config, given)

    from ropectl.cli import output

    if print_config:
        output.print_json(settings.model_dump(mode="json"))
        return
    from ropectl.evaluate.api import evaluate_perplexity
    from ropectl.report.tables import perplexity_parts

    output.check_new(out, overwrite)
    output.quiet_libraries()
    with output.ProgressReporter() as reporter:
        record = evaluate_perplexity(settings, reporter)
    output.present(record, perplexity_parts, out, format is options.Format.json)
