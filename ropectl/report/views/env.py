"""``env`` for people: one line a fact, to be pasted into a bug report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.report.document import Part, facts


def environment_parts(record: Mapping[str, Any]) -> list[Part]:
    """Returns the facts; a package that cannot be imported says why."""
    disk = record["disk"] or {"free": None, "total": None}
    cache, runtimes, terminal = record["hub_cache"], record["runtimes"], record["terminal"]
    here = [f"{name} {version}" for name, version in runtimes["packages"].items()] + list(runtimes["programs"])
    variables = [f"{name}={text}" for name, text in record["variables"].items()]
    threads = f", {record['torch_threads']} threads in torch" if record["torch_threads"] else ""
    is_terminal = "yes" if terminal["stdout_is_terminal"] else "no"
    devices = [(each["device"], _joined(each["name"], _memory(each))) for each in record["devices"]]
    rows = [
        ("python", f"{record['python']} ({record['executable']})"),
        ("platform", record["platform"]),
        *((name, _package(version, record["imports"].get(name))) for name, version in record["packages"].items()),
        ("imports", record["probe_error"]),
        *(devices or [("accelerator", record["device_error"] or "none")]),
        ("cuda", record["cuda"] and f"{record['cuda']} (of torch)"),
        ("cpu", f"{record['cpu_count']} logical{threads}"),
        ("memory", _memory(record["memory"])),
        ("disk here", _memory(disk)),
        ("runtimes here", ", ".join(here) or "none"),
        ("hub cache", cache and f"{cache['path']} ({'exists' if cache['exists'] else 'does not exist yet'})"),
        ("variables", ", ".join(variables) or "none of those that matter"),
        ("terminal", f"{is_terminal}, {terminal['columns']} columns, {terminal['encoding']}"),
    ]
    return [facts("", [(name, text) for name, text in rows if text])]


def _package(version: str | None, failure: str | None) -> str:
    if version is None:
        return "not installed"
    return f"{version}; does not import: {failure}" if failure else version


def _memory(sizes: Mapping[str, Any]) -> str:
    known = [(sizes[key], word) for key, word in (("free", "free"), ("total", "in all")) if sizes[key] is not None]
    return _joined(*(f"{size / 2**30:.1f} GiB {word}" for size, word in known))


def _joined(*texts: str) -> str:
    return ", ".join(filter(None, texts))
