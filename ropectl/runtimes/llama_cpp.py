"""llama.cpp: what its converter writes into a GGUF file, and what its loader makes of that.

Read: ``convert_hf_to_gguf`` and the loader as vendored in llama-cpp-python 0.3.36; run: xllamacpp 2026.10. With yarn
the loader recomputes the attention factor from the factor; of all keys only ``rope.scaling.attn_factor`` multiplies,
and the converter does not write it for LLaMA. ``llama-server`` clamps a request to the file's ``context_length``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ropectl.hf.config.families import named
from ropectl.records import NextStep, Problem, RuntimeReading
from ropectl.rope.config_patch import RopeConfigPatch
from ropectl.rope.frequencies import yarn_attention_factor
from ropectl.rope.methods.yarn import blend_by_index
from ropectl.runtimes import tables
from ropectl.runtimes.evidence import evidence_of
from ropectl.runtimes.judge import length_lines, read, relative_difference
from ropectl.runtimes.runtime import CheckpointFacts, Probe, Runtime
from ropectl.runtimes.tables import Table
from ropectl.runtimes.views import ORIGINAL, CannotLoadError, View, gguf_view

VERSION = "2026"

#: Architecture in the file, where it is not the model type.
ARCHITECTURES = {"mistral": "llama", "mixtral": "llama", "nemotron-nas": "deci", "gemma4_text": "gemma4"}

#: Architectures whose converter turns llama3 into ``rope_freqs.weight``.
CONVERTS_LLAMA3 = ("llama", "exaone", "deci")
#: Architectures whose converter writes the lists of longrope.
CONVERTS_LONGROPE = ("phi3", "phimoe", "minicpm", "minicpm3")
#: Architectures whose converter writes into ``rope_freqs.weight`` which pairs of the full layers turn.
CONVERTS_PROPORTIONAL = ("gemma4",)
#: Architectures whose graph reads ``rope_freqs.weight``.
READS_FACTORS = (
    *("llama", "llama4", "mistral3", "granite", "granitemoe", "exaone", "exaone4", "deci", "minicpm", "minicpm3"),
    *("phi3", "apertus", "arcee", "gemma4", "step35", "nanbeige"),
)
#: Families whose attention factor and betas of yarn survive the loader.
LOADS_YARN_KEYS = ("grok", "mistral3")


def architecture(facts: CheckpointFacts) -> str:
    """Returns the ``general.architecture`` of the converted file."""
    return ARCHITECTURES.get(facts.model_type, facts.model_type)


def _unscaled(view: View, why: str) -> Table:
    red = Problem("unscaled-in-gguf", why)
    return tables.static(tables.default(view).frequencies(0).inv_freq, causes=(red,), attention_causes=(red,))


def _yarn(view: View, arch: str) -> Table:
    if view.block.get("factor") is None:
        return _unscaled(view, "converts yarn without factor unscaled")
    factor, keys = view.block["factor"], ("beta_fast", "beta_slow")
    causes = []
    if arch not in LOADS_YARN_KEYS:
        given = [key for key in keys if view.block.get(key) is not None]
        if given:
            causes.append(Problem("betas-ignored", f"writes {' and '.join(given)}, but loads 32 and 1"))
        view = View(**{**vars(view), "block": {k: v for k, v in view.block.items() if k not in keys}})
    if not view.block.get("truncate", True):
        causes.append(Problem("truncate-ignored", "does not read truncate: rounds the ramp"))
    if ORIGINAL not in view.block:
        raise CannotLoadError(f"does not convert: yarn without {ORIGINAL}")
    attention = tables.yarn_attention(view.block, factor, absolute=False, mscales=False)
    return tables.yarn(view, view.block[ORIGINAL], factor, attention, True, tuple(causes))


def _longrope(view: View, arch: str) -> Table:
    if arch not in CONVERTS_LONGROPE:
        return _unscaled(view, "converts longrope without its lists: unscaled, without a message")
    original = view.required(ORIGINAL)
    factor = tables.su_attention(view.max_positions / original, original)
    red = (Problem("static-per-server", "longrope is decided once, by the context size that the server is given"),)
    is_long = view.max_positions > original
    return tables.longrope(view, lambda seq_len: is_long, factor, causes=red)


_TYPES: Mapping[str | None, Callable[[View, str], Table]] = {
    "default": lambda view, arch: tables.default(view),
    "linear": lambda view, arch: (
        tables.linear(view)
        if view.block.get("factor") is not None
        else _unscaled(view, "linear without factor: unscaled")
    ),
    "dynamic": lambda view, arch: _unscaled(view, "converts dynamic unscaled, without a message"),
    "llama3": lambda view, arch: (
        tables.llama3(view, {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, ORIGINAL: 8192})
        if arch in CONVERTS_LLAMA3
        else _unscaled(view, f"converts llama3 unscaled for architecture {arch}, without a message")
    ),
    "yarn": _yarn,
    "longrope": _longrope,
    "proportional": lambda view, arch: (
        tables.proportional(view, reads_factor=False)
        if arch in CONVERTS_PROPORTIONAL
        else _unscaled(view, "converts proportional for this architecture with all pairs turning, with a warning")
    ),
}


class LlamaCpp(Runtime):
    """llama.cpp, from the conversion of the checkpoint to ``llama-server``."""

    name = "llama.cpp"
    order = 40
    probe = Probe("llamacpp_logprobs.py", reads_gguf=True)

    def readings(self, facts: CheckpointFacts) -> list[RuntimeReading]:
        arch = architecture(facts)

        def table(view: View) -> Table:
            handler = _TYPES.get(view.rope_type)
            if handler is None:
                return _unscaled(view, f"converts rope_type {view.rope_type!r} unscaled, with a warning")
            return handler(view, arch)

        def serve(view: View) -> tuple[int | None, list[Problem]]:
            limit = view.max_positions
            return limit, length_lines(limit, facts.target_length, ": llama-server clamps at the file's context_length")

        return [read(self.name, VERSION, facts, gguf_view, table, serve, evidence_of(self.name, VERSION, facts))]

    def next_step(self, facts: CheckpointFacts) -> NextStep:
        arch = architecture(facts)
        if facts.method.depends_on_seq_len:
            if arch in CONVERTS_LONGROPE and self.readings(facts)[0].rope_type == "longrope":
                return _command(facts, [], ("longrope is decided once, by the context size that the server is given",))
            why = f"{facts.method.name} depends on the length of the sequence; a GGUF file holds one table"
            return NextStep(self.name, None, f"{why}. Write one length: --freeze-at {facts.target_length}")
        patch = facts.method.config_patch(facts.geometry)
        flags = _flags(facts, patch, arch)
        if flags is not None:
            return _command(facts, flags)
        if arch in READS_FACTORS:
            note = (
                f"writes rope_freqs.weight into a copy of the GGUF; then: llama-server -m COPY -c {facts.target_length}"
            )
            return NextStep(
                self.name, f"ropectl patch {facts.shell_location} --gguf-patch FILE.gguf -o COPY.gguf", None, (note,)
            )
        why = f"the graph of architecture {arch} reads no rope_freqs.weight, and no flag says these frequencies"
        return NextStep(self.name, None, why)


def _command(facts: CheckpointFacts, flags: list[str], notes: tuple[str, ...] = ()) -> NextStep:
    arch, target = architecture(facts), facts.target_length
    if int(named(facts.section, "max_position_embeddings") or 0) < target:
        flags = [*flags, f"--override-kv {arch}.context_length=int:{target}"]
    convert = f"python convert_hf_to_gguf.py {facts.shell_location} --outfile model.gguf"
    return NextStep(
        "llama.cpp", f"{convert} && {' '.join(['llama-server -m model.gguf', f'-c {target}', *flags])}", None, notes
    )


def _flags(facts: CheckpointFacts, patch: RopeConfigPatch, arch: str) -> list[str] | None:
    """Returns the flags with which ``llama-server`` computes a patch; None where no flags can say it."""
    block = patch.rope_parameters
    base = f"--rope-freq-base {block['rope_theta']:.10g}"
    match block["rope_type"]:
        case "yarn":
            return _yarn_flags(facts, patch, arch, base)
        case "llama3":  # no flags where the converter writes the frequencies into the file
            return [] if arch in CONVERTS_LLAMA3 and LlamaCpp().readings(facts)[0].rope_type == "llama3" else None
        case "proportional" if arch not in CONVERTS_PROPORTIONAL:
            return None
        case "linear" | "proportional" if "factor" in block:
            return ["--rope-scaling linear", f"--rope-scale {block['factor']:.10g}", base]
        case "default" | "proportional":  # the divisors in the file leave base and factor to the pairs that turn
            return ["--rope-scaling none", base]
        case _:
            return None


def _yarn_flags(facts: CheckpointFacts, patch: RopeConfigPatch, arch: str, base: str) -> list[str] | None:
    """Returns the flags for yarn; None where only a ramp that is not rounded would do."""
    block, geometry = patch.rope_parameters, facts.geometry
    factor, fast, slow = block["factor"], block.get("beta_fast", 32.0), block.get("beta_slow", 1.0)
    meant = facts.meant(facts.target_length)
    rounded = blend_by_index(geometry, factor, fast, slow, True)
    if relative_difference(rounded, meant.inv_freq) > 0:
        return None
    flags = [
        "--rope-scaling yarn",
        f"--rope-scale {factor:.10g}",
        f"--yarn-orig-ctx {geometry.original_max_position_embeddings}",
        base,
    ]
    if (fast, slow) != (32.0, 1.0):
        flags += [f"--yarn-beta-fast {fast:g}", f"--yarn-beta-slow {slow:g}"]
    own = yarn_attention_factor(factor)
    if abs(meant.attention_factor - own) > 1e-9:
        flags.append(f"--override-kv {arch}.rope.scaling.attn_factor=float:{meant.attention_factor / own:.10g}")
    return flags
