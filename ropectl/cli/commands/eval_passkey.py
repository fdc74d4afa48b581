"""``ropectl eval-passkey``."""

from __future__ import annotations

from ropectl.cli import options


def eval_passkey(
    model: options.Model = None,
    method: options.MethodSpec = None,
    factor: options.Factor = None,
    target_length: options.TargetLength = None,
    lengths: options.Lengths = None,
    depths: options.Depths = None,
    trials: options.Trials = None,
    distractors: options.Distractors = None,
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
    format: options.OutputFormat = options.Format.human,
) -> None:
    """Measure passkey retrieval by length and depth: a number is hidden in filler text and asked for at the end.

    A single number is easy to retrieve: it shows that a distance is used at all.
    It does not show that a long text is understood. Harder: --distractors 3.

    Example: ropectl eval-passkey ./my-model -m yarn --factor 4 --length 2k..16k
    """
    given = locals()  # the options are the settings, under the same names
    from ropectl.evaluate.config import PasskeyConfig

    settings = options.resolve_config(PasskeyConfig, config, given)

    from ropectl.cli import output

    if print_config:
        output.print_json(settings.model_dump(mode="json"))
        return
    from ropectl.evaluate.api import evaluate_passkey
    from ropectl.report.tables import passkey_parts

    output.check_new(out, overwrite)
    output.quiet_libraries()
    with output.ProgressReporter() as reporter:
        record = evaluate_passkey(settings, reporter)
    output.present(record, passkey_parts, out, format is options.Format.json)
