"""``ropectl env``."""

from __future__ import annotations

from ropectl.cli import options


def env(format: options.OutputFormat = options.Format.human) -> None:
    """Describe this installation for a bug report: versions, devices, memory, caches. Tokens and other secrets are not read.

    Works in a half-broken installation: what cannot be imported is a row that says why.

    Example: ropectl env

    Example: ropectl env --format json
    """
    from ropectl.cli import output
    from ropectl.environment import describe_environment
    from ropectl.report.views.env import environment_parts

    output.print_report(describe_environment(), format, environment_parts)
