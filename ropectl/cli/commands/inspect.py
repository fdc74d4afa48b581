"""``ropectl inspect``."""

from __future__ import annotations

from typing import Annotated

import typer

from ropectl.cli import options


def inspect(
    model: options.Model = None,
    method: options.MethodSpec = None,
    factor: options.Factor = None,
    target_length: options.TargetLength = None,
    geometry: Annotated[
        str | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Numbers instead of a model: rotary_dim, rope_theta, original_max_position_embeddings.",
        ),
    ] = None,
    seq_len: Annotated[
        str | None, typer.Option(metavar="N", help="Sequence length, for methods that depend on it.")
    ] = None,
    layers: options.Layers = None,
    replace: options.Replace = None,
    revision: options.Revision = None,
    original_length: options.OriginalLength = None,
    trust_remote_code: options.TrustRemoteCode = None,
    format: options.OutputFormat = options.Format.human,
) -> None:
    """Show what the rotary embedding of a model, or of plain numbers, computes. No weights are loaded.

    Example: ropectl inspect --geometry rotary_dim=128,rope_theta=10000,original_max_position_embeddings=4096 -m yarn --factor 8
    """
    given = locals()  # the options are the settings, under the same names
    from ropectl.cli import output
    from ropectl.errors import ConfigError
    from ropectl.evaluate.config import ModelConfig
    from ropectl.evaluate.setup import Setup, resolve_factor
    from ropectl.lengths import parse_length
    from ropectl.report.inspection import inspection_parts
    from ropectl.rope.geometry import RopeGeometry
    from ropectl.rope.inspection import inspect_rope
    from ropectl.rope.registry import parse_method

    if geometry is not None and (model is not None or original_length is not None or layers is not None):
        raise ConfigError(
            "--geometry says all numbers itself: it goes neither with a model nor with --original-length or --layers."
        )
    if method is None and (factor is not None or target_length is not None):
        raise ConfigError(
            "--factor and --target-length need a method to apply them to.", "Type for example: -m yarn --factor 4"
        )
    length = parse_length(seq_len) if seq_len else None
    settings = options.resolve_config(ModelConfig, None, given)
    if geometry is not None:
        numbers = RopeGeometry.parse(geometry)
        wanted = resolve_factor(numbers, settings.factor, settings.target_length)
        record = inspect_rope(numbers, parse_method(method or "none", wanted, numbers), length)
    else:
        setup = Setup.of(settings)
        record = inspect_rope(setup.geometry, setup.method(method), length, setup.source.rope.warnings)
    if format is options.Format.json:
        output.print_json(record)
    else:
        output.print_human(*inspection_parts(record))
