"""``ropectl methods``."""

from __future__ import annotations

from typing import Annotated

import typer

from ropectl.cli import options


def methods(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One method, in full.", show_default=False)] = None,
    format: options.OutputFormat = options.Format.human,
) -> None:
    """List the scaling methods, or explain one: formula, parameters with units and defaults, reference.

    Example: ropectl methods yarn
    """
    from ropectl.cli import output
    from ropectl.report.methods import method_page, methods_table
    from ropectl.rope.catalog import describe_method
    from ropectl.rope.registry import all_methods, find_method

    kinds = [find_method(name)] if name else list(all_methods().values())
    entries = [describe_method(kind) for kind in kinds]
    if format is options.Format.json:
        output.print_json(entries)
    elif name:
        output.print_human(*method_page(entries[0]))
    else:
        output.print_human(methods_table(entries))
