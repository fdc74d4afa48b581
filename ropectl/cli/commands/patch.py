"""``ropectl patch``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropectl.cli import options

if TYPE_CHECKING:
    from ropectl.checkpoint.settings import PatchSettings


def patch(settings: PatchSettings, format: options.OutputFormat = options.Format.human) -> None:
    """Write a checkpoint that stock runtimes load with the scaling in force. Weights are copied, not loaded.

    Without a method the scaling that is there is kept, and written so that old and new readers find it.

    Example: ropectl patch ./my-model -m yarn --factor 4 -o my-model-yarn4

    Example: ropectl patch ./my-model -m dynamic-yarn --freeze-at 16k -o my-model-frozen --dry-run

    Example: ropectl patch --gguf-patch model.gguf -m yarn --factor 4 -o model-yarn4.gguf
    """
    from ropectl.checkpoint.patching import patch_checkpoint
    from ropectl.cli import next_steps, output
    from ropectl.cli.progress import BarReporter
    from ropectl.records import PatchRecord
    from ropectl.report.views.patch_checkpoint import patch_parts, step_lines

    output.quiet_libraries()
    with BarReporter() as reporter:
        record = patch_checkpoint(settings, reporter)
    output.print_report(record, format, patch_parts, step_lines, PatchRecord)
    lacks_place = settings.out is None
    steps = next_steps.after_dry_run(lacks_place) if settings.dry_run else next_steps.after_patch(settings)
    next_steps.show(steps, format)
