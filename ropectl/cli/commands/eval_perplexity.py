"""``ropectl eval-perplexity``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropectl.cli import options

if TYPE_CHECKING:
    from ropectl.evaluate.config import PerplexityConfig


def eval_perplexity(
    settings: PerplexityConfig,
    out: options.OutFile = None,
    overwrite: options.Overwrite = False,
    format: options.TableFormat = "human",
) -> None:
    """Measure perplexity by context length; all lengths in one pass where method and protocol allow it.

    Lengths run from half the trained one to the target, unless --length names them.

    Example: ropectl eval-perplexity ./my-model -m yarn --factor 4 --length 2k..16k --text book.txt --split auto

    Example: ropectl eval-perplexity ./my-model -m yarn --factor 4 --preset yarn --length 2k..16k

    Example: ropectl eval-perplexity ./my-model -m yarn --factor 4 --protocol tail --length 512..2k
    """
    from ropectl.cli import next_steps, output
    from ropectl.cli.progress import BarReporter
    from ropectl.evaluate.judging.verdict_sentences import limit_messages
    from ropectl.evaluate.perplexity.evaluation import evaluate_perplexity

    output.check_one_process("eval-perplexity")
    output.check_new(out, overwrite, settings)
    output.quiet_libraries()
    with BarReporter() as reporter:
        record = evaluate_perplexity(settings, reporter)
    output.present(record, format, out)
    next_steps.show(next_steps.after_measurement(settings, out), format)
    if settings.fail_above is not None and (messages := limit_messages(record["points"], settings.fail_above)):
        output.gate_failed(messages)
