"""``ropectl eval-passkey``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropectl.cli import options

if TYPE_CHECKING:
    from ropectl.evaluate.config import PasskeyConfig


def eval_passkey(
    settings: PasskeyConfig,
    out: options.OutFile = None,
    overwrite: options.Overwrite = False,
    format: options.TableFormat = "human",
) -> None:
    """Measure passkey retrieval by length and depth: a number is hidden in filler text and asked for at the end.

    A single number is easy to retrieve: it shows that a distance is used at all, not that a long text is understood.
    Harder: --distractors 3.

    Answers are scored token by token, each given the true ones before it, in one walk that computes what prompts share once.
    That finds exactly the key as greedy decoding would write it. --generate decodes and reads: the first complete number
    counts, whatever words are around it, so that "**12345**." is right.

    Example: ropectl eval-passkey ./my-model -m yarn --factor 4 --length 2k..16k

    Example: ropectl eval-passkey ./my-model --chat --distractors 3 --min-accuracy 0.9

    Example: ropectl eval-passkey ./my-model --grid position --position 1k,2k --length 4k
    """
    from ropectl.cli import next_steps, output
    from ropectl.cli.progress import BarReporter
    from ropectl.evaluate.retrieval.passkey_evaluation import evaluate_passkey, failed_gate

    output.check_one_process("eval-passkey")
    output.check_new(out, overwrite, settings)
    output.quiet_libraries()
    with BarReporter() as reporter:
        record = evaluate_passkey(settings, reporter)
    output.present(record, format, out)
    next_steps.show(next_steps.after_measurement(settings, out), format)
    failures = failed_gate(record, settings.min_accuracy)
    if failures:
        output.gate_failed(failures)
