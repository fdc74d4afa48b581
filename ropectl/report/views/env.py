"""The view of ``env``: one line per fact, to be pasted into a bug report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ropectl.report.document import Part, facts

NOT_INSTALLED = "not installed"


def environment_parts(record: Mapping[str, Any]) -> list[Part]:
    """Returns the facts; a package that cannot be imported says so."""
    return [facts("", [(name, text) for name, text in _rows(record) if text])]


def _rows(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    broken = {name: text for name, text in record["imports"].items() if text is not None}
    rows = [("python", f"{record['python']} ({record['executable']})"), ("platform", record["platform"])]
    for name, found in record["packages"].items():
        failure = f"; does not import: {broken[name]}" if name in broken else ""
        rows.append((name, (found or NOT_INSTALLED) + (failure if found else "")))
    rows += [("imports", record["probe_error"] or "")]
    rows += _device_rows(record)
    runtimes = record["runtimes"]
    found = [f"{name} {text}" for name, text in runtimes["packages"].items()] + list(runtimes["programs"])
    cache = record["hub_cache"]
    terminal = record["terminal"]
    return [
        *rows,
        ("runtimes here", ", ".join(found) or "none"),
        ("hub cache", "" if cache is None else f"{cache['path']} ({'exists' if cache['exists'] else 'does not exist yet'})"),
        ("variables", ", ".join(f"{name}={text}" for name, text in record["variables"].items()) or "none of those that matter"),
        (
            "terminal",
            f"{'yes' if terminal['stdout_is_terminal'] else 'no'}, {terminal['columns']} columns, {terminal['encoding']}",
        ),
    ]  # fmt: skip


def _device_rows(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = [(device["device"], _device(device)) for device in record["devices"]]
    if not rows:
        rows = [("accelerator", record["device_error"] or "none")]
    if record["cuda"]:
        rows.append(("cuda", f"{record['cuda']} (of torch)"))
    threads = f", {record['torch_threads']} threads in torch" if record["torch_threads"] else ""
    rows.append(("cpu", f"{record['cpu_count']} logical{threads}"))
    memory, disk = record["memory"], record["disk"] or {"free": None, "total": None}
    rows.append(("memory", _share(memory["free"], memory["total"])))
    rows.append(("disk here", _share(disk["free"], disk["total"])))
    return rows


def _device(device: Mapping[str, Any]) -> str:
    share = _share(device["free"], device["total"])
    return f"{device['name']}, {share}" if share else str(device["name"])


def _share(free: int | None, total: int | None) -> str:
    known = [
        f"{value / 2**30:.1f} GiB {word}" for value, word in ((free, "free"), (total, "in all")) if value is not None
    ]
    return ", ".join(known)
