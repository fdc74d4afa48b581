"""``ropectl inspect``."""

from __future__ import annotations

from typing import Annotated

import typer

from ropectl.cli import options

_NUMBERS, _CHECKS = "Model", "What to show"


def inspect(
    model: options.Model = None,
    methods: options.ShownMethods = None,
    factor: options.Factor = None,
    target_length: options.TargetLength = None,
    geometry: Annotated[
        str | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Numbers instead of a model: rotary_dim, rope_theta, original_max_position_embeddings, and num_turning if not all pairs turn.",
            rich_help_panel=_NUMBERS,
        ),
    ] = None,
    seq_len: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Sequence length, for methods that depend on it (default: the trained one).",
            rich_help_panel=_CHECKS,
        ),
    ] = None,
    self_test: Annotated[
        bool,
        typer.Option(
            "--self-test",
            help="Check the model's own rotary code with numbers (no weights); exit code 1 if it fails.",
            rich_help_panel=_CHECKS,
        ),
    ] = False,
    layers: options.Layers = None,
    replace: options.Replace = None,
    revision: options.Revision = None,
    original_length: options.OriginalLength = None,
    trust_remote_code: options.TrustRemoteCode = None,
    plot: options.Plot = None,
    format: options.OutputFormat = options.Format.human,
) -> None:
    """Show what the rotary embedding of a model, or of plain numbers, computes. No weights are loaded.

    Example: ropectl inspect ./my-model -m ntk --target-length 16k

    Example: ropectl inspect --geometry rotary_dim=128,rope_theta=10000,original_max_position_embeddings=4096 -m yarn --factor 8

    Example: ropectl inspect ./my-model -m pi -m ntk -m yarn --factor 4 --plot frequencies.svg
    """
    given = locals()  # the options are the settings, under the same names
    from ropectl.cli import output
    from ropectl.cli.inspected import Inspected, run_self_test
    from ropectl.errors import ConfigError
    from ropectl.evaluate.config import ModelConfig
    from ropectl.lengths import parse_length
    from ropectl.report.figures.output import check_figure
    from ropectl.report.inspection import inspection_parts
    from ropectl.rope.inspection import inspect_rope
    from ropectl.runtimes import read_all

    output.quiet_libraries()
    if geometry is not None and (model is not None or original_length is not None or layers is not None):
        raise ConfigError(
            "--geometry says all numbers itself: it goes neither with a model nor with --original-length or --layers."
        )
    if not methods and not self_test and plot is None and (factor is not None or target_length is not None):
        raise ConfigError(
            "--factor and --target-length need a method to apply them to.", "Type for example: -m yarn --factor 4"
        )
    if plot is not None:
        check_figure(plot)
    length = parse_length(seq_len, "--seq-len") if seq_len else None
    subject = Inspected.of(options.resolve_config(ModelConfig, None, given), geometry)
    chosen = subject.methods(methods or [], every=plot is not None and not self_test)
    if self_test:
        run_self_test(subject, chosen, length, plot, as_json=format is options.Format.json)
        return
    records = []
    for method in chosen:
        facts = subject.facts(method, length, is_asked=bool(methods))
        runtimes = [reading.to_json() for reading in read_all(facts)] if facts else []
        shown = inspect_rope(subject.geometry, method, length, subject.notes(method))
        records.append({**shown, **subject.model_facts(method, length), "runtimes": runtimes})
    if plot is not None:
        subject.plot_frequencies(plot, chosen, length)
    if format is options.Format.json:
        output.print_json(records[0] if len(records) == 1 else records)
    else:
        for number, record in enumerate(records):
            if number:
                print()
            output.print_parts(inspection_parts(record))
