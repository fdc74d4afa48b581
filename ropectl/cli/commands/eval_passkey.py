"""``ropectl eval-passkey``."""

from __future__ import annotations

from typing import Annotated

import typer

from ropectl.cli import completion, options

_TEXT = "Measurement"

Grid = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="depth (needles at shares of each length, default) or position (at fixed tokens).",
        rich_help_panel=_TEXT,
        autocompletion=completion.names_in("ropectl.evaluate.passkey_api", "GRIDS"),
    ),
]
Positions = Annotated[
    list[str] | None,
    typer.Option(
        "--position",
        metavar="N",
        help="Needle positions of --grid position, as lengths are written; by default 0, half the shortest length, and each "
        "length but the longest.",
        rich_help_panel=_TEXT,
    ),
]
Generate = Annotated[
    bool | None,
    typer.Option("--generate", help="Decode the answers greedily too, and compare.", rich_help_panel=_TEXT),
]
Chat = Annotated[
    bool | None,
    typer.Option("--chat", help="Ask through the tokenizer's chat template (instruct models).", rich_help_panel=_TEXT),
]
MinAccuracy = Annotated[
    str | None,
    typer.Option(
        metavar="A", help="Exit with code 3 where a length's accuracy is below, in (0, 1].", rich_help_panel=_TEXT
    ),
]


def eval_passkey(
    model: options.Model = None,
    method: options.MethodSpec = None,
    factor: options.Factor = None,
    target_length: options.TargetLength = None,
    lengths: options.Lengths = None,
    depths: options.Depths = None,
    trials: options.Trials = None,
    grid: Grid = None,
    needle_positions: Positions = None,
    distractors: options.Distractors = None,
    chat: Chat = None,
    generate: Generate = None,
    min_accuracy: MinAccuracy = None,
    seed: options.Seed = None,
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
    """Measure passkey retrieval by length and depth: a number is hidden in filler text and asked for at the end.

    A single number is easy to retrieve: it shows that a distance is used at all, not that a long text is understood.
    Harder: --distractors 3.

    Answers are scored token by token, each given the true ones before it, in one walk that computes what prompts share once.
    That finds exactly what greedy decoding would; --generate decodes too, and compares.

    Example: ropectl eval-passkey ./my-model -m yarn --factor 4 --length 2k..16k

    Example: ropectl eval-passkey ./my-model --chat --distractors 3 --min-accuracy 0.9

    Example: ropectl eval-passkey ./my-model --grid position --position 1k,2k --length 4k
    """
    given = locals()  # the options are the settings, under the same names
    from ropectl.evaluate.config import PasskeyConfig

    settings = options.resolve_config(PasskeyConfig, config, given, eval_passkey)

    from ropectl.cli import output
    from ropectl.cli.gates import gate_failed
    from ropectl.cli.progress import BarReporter

    if print_config:
        output.print_json(settings.model_dump(mode="json"))
        return
    from ropectl.evaluate.passkey_api import evaluate_passkey, failed_gate
    from ropectl.report.views import PASSKEY

    output.check_one_process("eval-passkey")
    output.check_new(out, overwrite)
    output.quiet_libraries()
    with BarReporter() as reporter:
        record = evaluate_passkey(settings, reporter)
    output.present(record, PASSKEY, format, out)
    failures = failed_gate(record, settings.min_accuracy)
    if failures:
        gate_failed(failures)
