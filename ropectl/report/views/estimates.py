"""The views of ``--dry-run``: what a training or a comparison would take, before it begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ropectl.report.document import BAD, GOOD, Cell, Column, Part, Row, Sentence, Table, View, cells, columns, facts
from ropectl.report.tables.derived import derived_rows, derived_text
from ropectl.report.tables.words import NOT_AVAILABLE
from ropectl.rope.derived_value import DerivedValue
from ropectl.rope.method import short_spec
from ropectl.timing.durations import duration, duration_range
from ropectl.timing.speed import Span

#: How much faster one thread is on a busy machine to be worth a word.
ONE_THREAD_HELPS = 1.5


def estimate_parts(record: Mapping[str, Any]) -> list[Part]:
    """Returns the tables of ``finetune --dry-run``: what is done, memory by part, and what would need less."""
    memory = record["memory"]
    unit, size = _unit(memory["total"])
    parts: list[Part] = [_work_table(record), *_busy(record["time"])]
    parts += [_memory_table(memory, unit, size), _verdict(memory["fits"])]
    if memory["levers"]:
        parts.append(_lever_table(memory["levers"], unit, size))
    if all(each["fits"] is False for each in (memory, *memory["levers"])):
        parts.append(Sentence("It needs more devices: FSDP2 divides the weights, --cp-size the sequences."))
    if record["rough"]:
        parts.append(Sentence(f"Memory and time are rough: {'; '.join(record['rough'])}."))
    return parts


def _unit(num_bytes: int) -> tuple[str, int]:
    return ("GiB", 2**30) if num_bytes >= 2**30 else ("MiB", 2**20)


def _work_table(record: Mapping[str, Any]) -> Table:
    parameters, data, flops = record["parameters"], record["data"], record["flops"]
    trained, total = parameters["trained"], parameters["total"]
    counts = ", ".join(f"{name} {count:,}" for name, count in parameters["trained_parts"].items())
    text = (
        f"{data['steps']:,} steps of {data['sequences_per_step']:,} sequences, {data['tokens']:,} tokens "
        f"({data['tokens_per_step']:,} a step), {data['epochs']:.3g} epochs of {data['blocks']:,} "
        f"blocks of {record['seq_len']:,}"
    )
    rows = (
        ("model", f"{record['model']}, {short_spec(record['method'])}"),
        *derived_rows(_derived(record["derived"])),
        ("parameters", f"{total:,}; trained {trained:,} ({trained / total:.2%}): {counts}"),
        ("text", text),
        ("arithmetic", f"{flops['total']:.3g} operations, {flops['per_token']:.3g} a token"),
        ("time", _time(record["time"])),
    )
    return facts("Estimate; no weight was loaded, nothing written", rows)


def _derived(values: Mapping[str, Any]) -> dict[str, DerivedValue]:
    return {name: DerivedValue(**value) for name, value in values.items()}


def _time(time: Mapping[str, Any]) -> str:
    if time["seconds"] is None:
        return f"{NOT_AVAILABLE}: {time['reason']}"
    step = time["seconds_per_step"]
    each = f"{step:.3g} s" if step < 100 else duration(step)
    left_out = f"; without {', '.join(time['left_out'])}" if time["left_out"] else ""
    return f"{duration_range(_span(time))}, {each} a step, {time['tokens_per_second']:,.0f} tokens/s{left_out}"


def _span(time: Mapping[str, Any]) -> Span:
    """Returns the range of a time."""
    return Span(time["seconds_low"], time["seconds"], time["seconds_high"])


def _busy(time: Mapping[str, Any]) -> list[Part]:
    """Returns a sentence where the machine had other work when it was timed."""
    if not time.get("busy"):
        return []
    passes = [each["seconds"] for each in time["calibration"]["passes"] if len(each["seconds"]) > 1]
    signs = [] if time["load"] is None else [f"load {time['load']:.1f} on {time['cores']} cores"]
    if passes:
        widest = max(passes, key=lambda seconds: max(seconds) - min(seconds))
        signs.append(f"the same pass took between {min(widest):.2g} and {max(widest):.2g} s")
    signs_text = f" ({'; '.join(signs)})" if signs else ""
    one = time["gain_of_one_thread"] is not None and time["gain_of_one_thread"] > ONE_THREAD_HELPS
    hint = " Until then one thread is faster: OMP_NUM_THREADS=1." if one else ""
    return [Sentence(f"The machine is busy{signs_text}: it takes the shorter time once that is over.{hint}", BAD)]


def _memory_table(memory: Mapping[str, Any], unit: str, size: int) -> Table:
    amounts = {name.replace("_", " "): num_bytes for name, num_bytes in memory["parts"].items()}
    rows = [Row(name, cells([f"{num_bytes / size:,.2f}"])) for name, num_bytes in amounts.items()]
    rows.append(Row("all, at most", cells([f"{memory['total'] / size:,.2f}"]), is_total=True))
    if memory["free"] is not None:
        rows.append(Row("free", cells([f"{memory['free'] / size:,.2f}"])))
    title = "Memory" if memory["devices"] == 1 else f"Memory on each of {memory['devices']} devices"
    return Table(title, "part", columns([unit]), rows)


def _verdict(fits: bool | None) -> Sentence:
    if fits is None:
        return Sentence("It is not known here how much memory is free.")
    return Sentence("It fits.", GOOD) if fits else Sentence("It does not fit.", BAD)


def _lever_table(levers: Sequence[Mapping[str, Any]], unit: str, size: int) -> Table:
    verdicts = {None: Cell(""), True: Cell("fits", tone=GOOD), False: Cell("does not fit", tone=BAD)}
    rows = [Row(lever["flags"], [Cell(f"{lever['total'] / size:,.2f}"), verdicts[lever["fits"]]]) for lever in levers]
    return Table("What needs less", "with", [Column(unit), Column("", is_text=True)], rows)


def comparison_estimate_parts(record: Mapping[str, Any]) -> list[Part]:
    """Returns the tables of ``compare-methods --dry-run``."""
    parts: list[Part] = []
    for model in record["models"]:
        parts.extend(_model(model))
    times = [model["time"] for model in record["models"]]
    if len(times) > 1 and all(time["seconds"] is not None for time in times):
        parts.append(Sentence(f"All models: {duration_range(sum(map(_span, times), Span()))} on this machine."))
    busy = next((part for time in times for part in _busy(time)), None)
    return [*parts, *([busy] if busy else []), *_budget(record.get("budget"))]


def _budget(budget: Mapping[str, Any] | None) -> list[Part]:
    """Returns what would fit in a limit of time."""
    if budget is None:
        return []
    limit = f"--budget {duration(budget['seconds'])}"
    if budget["left_out"] is None:
        return [Sentence(f"{limit}: what fits is not known without the time.")]
    if not budget["left_out"]:
        return [Sentence(f"{limit}: all {budget['cells']} cells fit.")]
    return [Sentence(f"{limit}: {budget['sentence']}")]


def _model(model: Mapping[str, Any]) -> list[Part]:
    rows = []
    for kind in model["kinds"]:
        numbers = (
            str(kind["cells"]),
            f"{kind['tokens']:,}",
            f"{kind['flops']:.2e}",
            _kind_time(model["time"], kind["kind"]),
        )
        rows.append(Row(kind["kind"], cells(numbers)))
    title = f"{model['model']}, {len(model['methods'])} method{'s' if len(model['methods']) > 1 else ''}"
    heads = columns(["cells", "tokens", "operations", "time"])
    parts: list[Part] = [Table(title, "measurement", heads, rows), _methods_table(model["derived"])]
    if model["finished"]:
        parts.append(Sentence(f"{model['finished']} of {model['cells']} cells are finished already and not counted."))
    if model["time"]["seconds"] is None:
        parts.append(Sentence(f"Time and memory: n/a ({model['time']['reason']})."))
        return parts
    left_out = f", without {', '.join(named)}" if (named := model["time"].get("left_out")) else ""
    parts.append(Sentence(f"In all {duration_range(_span(model['time']))} on this machine, one process{left_out}."))
    if model["memory"]["parts"]:
        parts.append(Sentence(_memory_sentence(model["memory"])))
    return parts


def _kind_time(time: Mapping[str, Any], kind: str) -> str:
    """Returns the range of the time of a kind of cells."""
    if kind not in time.get("kinds", {}):
        return NOT_AVAILABLE
    return duration_range(Span(time["kinds_low"][kind], time["kinds"][kind], time["kinds_high"][kind]))


def _methods_table(derived: Mapping[str, Any]) -> Table:
    """Returns a line for each method with its derived values, those that only some have in the last column."""
    common = {"factor": ".4g", "attention_factor": ".4f", "base": ".7g", "target_length": "d"}
    rows = []
    for spec, found in derived.items():
        values = _derived(found)
        own = [name for name in values if name not in {*common, "trained_length"}]
        texts = [f"{values[name].value:{form}}" for name, form in common.items()]
        rest = ", ".join(f"{name.replace('_', ' ')} {derived_text(values[name], with_unit=False)}" for name in own)
        rows.append(Row(short_spec(spec), [*cells(texts), Cell(rest)]))
    heads = [*columns(["s", "A", "base", "L'"]), Column("", is_text=True)]
    return Table("Methods: factor s, attention factor A, rope_theta, target L' [tokens]", "method", heads, rows)


def _memory_sentence(memory: Mapping[str, Any]) -> str:
    unit, size = _unit(memory["total"])
    named = ", ".join(f"{name} {amount / size:.2f}" for name, amount in memory["parts"].items() if amount)
    free = "" if memory["free"] is None else f"; free: {memory['free'] / size:.1f} {unit}"
    return f"Memory about {memory['total'] / size:.2f} {unit} ({named}){free}."


COMPARISON = View(comparison_estimate_parts, is_headed=False)
