"""Says how ``llama-server`` is started on a checkpoint: the conversion, and the flags that say what the file does not."""

from __future__ import annotations

from ropectl.gguf.architectures import DIVISOR_TENSORS_READ, architecture_of
from ropectl.hf.config.families import named
from ropectl.records import NextStep, RuntimeReading
from ropectl.rope.config_patch import RopeConfigPatch
from ropectl.rope.methods.yarn import blend_by_index
from ropectl.runtimes.gguf.tables import loader_attention_factor
from ropectl.runtimes.gguf.traits import Traits, traits_of
from ropectl.runtimes.judge import relative_difference
from ropectl.runtimes.runtime import CheckpointFacts
from ropectl.runtimes.views import v5_block

NAME = "llama.cpp"

#: Models of several parts that have an architecture of their own, whatever their text part is.
WHOLE_MODELS = ("mistral3",)


def architecture(facts: CheckpointFacts) -> str:
    """Returns the ``general.architecture`` of the converted file."""
    whole = str(facts.config.get("model_type"))
    return architecture_of(whole if whole in WHOLE_MODELS else facts.model_type)


def next_step(facts: CheckpointFacts, reading: RuntimeReading) -> NextStep:
    """Returns how llama.cpp is started on a checkpoint, or why not to.

    Args:
        facts: The checkpoint.
        reading: What llama.cpp makes of it.
    """
    name = architecture(facts)
    traits = traits_of(name) if name == architecture_of(facts.model_type) else Traits()
    if reading.loads is False:
        return NextStep(NAME, None, reading.problems[0].text)
    if facts.method.depends_on_seq_len:
        if traits.longrope and reading.rope_type == "longrope":
            note = "longrope is decided once, by the context size that the server is given"
            return _command(facts, reading, [], (note,))
        why = f"{facts.method.name} depends on the length of the sequence; a GGUF file holds one table"
        return NextStep(NAME, None, f"{why}. Write one length: --freeze-at {facts.target_length}")
    flags = _flags(facts, facts.method.config_patch(facts.geometry), traits, reading)
    if flags is not None:
        return _command(facts, reading, flags, () if reading.loads else (reading.evidence.source,))
    if name in DIVISOR_TENSORS_READ:
        note = f"writes rope_freqs.weight into a copy of the GGUF; then: llama-server -m COPY -c {facts.target_length}"
        return NextStep(
            NAME, f"ropectl patch {facts.shell_location} --gguf-patch FILE.gguf -o COPY.gguf", None, (note,)
        )
    if reading.loads is None:
        return NextStep(NAME, None, f"{reading.evidence.source}, and no flag says these frequencies")
    if any(problem.code == "softmax-scale" for problem in reading.problems):
        why = "latent attention: llama.cpp makes its softmax scale of the attention factor too, and no flag undoes that"
        return NextStep(NAME, None, why)
    why = f"the graph of architecture {name} reads no rope_freqs.weight, and no flag says these frequencies"
    return NextStep(NAME, None, why)


def _command(
    facts: CheckpointFacts, reading: RuntimeReading, flags: list[str], notes: tuple[str, ...] = ()
) -> NextStep:
    target, served = facts.target_length, reading.usable_length
    if served is None:  # not known for this family
        served = int(named(facts.section, "max_position_embeddings") or 0)
    if served < target:
        flags = [*flags, f"--override-kv {architecture(facts)}.context_length=int:{target}"]
    # float32 holds any checkpoint's weights as they are: what then differs from transformers is not arithmetic
    convert = f"python convert_hf_to_gguf.py {facts.shell_location} --outtype f32 --outfile model.gguf"
    command = f"{convert} && {' '.join(['llama-server -m model.gguf', f'-c {target}', *flags])}"
    return NextStep(NAME, command, None, notes)


def _flags(facts: CheckpointFacts, patch: RopeConfigPatch, traits: Traits, reading: RuntimeReading) -> list[str] | None:
    """Returns the flags with which ``llama-server`` computes a patch; None where no flags can say it."""
    block = patch.rope_parameters
    base = f"--rope-freq-base {block['rope_theta']:.10g}"
    match block["rope_type"]:
        case "yarn":
            return _yarn_flags(facts, patch, traits, base)
        case "llama3":  # no flags where the converter writes the frequencies into the file
            return [] if traits.llama3 is True and reading.rope_type == "llama3" else None
        case "proportional" if not traits.proportional:
            return None
        case "linear" if traits.latent:
            return None
        case "linear" | "proportional" if "factor" in block:
            return ["--rope-scaling linear", f"--rope-scale {block['factor']:.10g}", base]
        case "default" | "proportional":  # the divisors in the file leave base and factor to the pairs that turn
            return ["--rope-scaling none", base]
        case _:
            return None


def _yarn_flags(facts: CheckpointFacts, patch: RopeConfigPatch, traits: Traits, base: str) -> list[str] | None:
    """Returns the flags for yarn; None where only a ramp that is not rounded or another softmax scale would do."""
    block, geometry = patch.rope_parameters, facts.geometry
    factor, fast, slow = block["factor"], block.get("beta_fast", 32.0), block.get("beta_slow", 1.0)
    meant = facts.meant(facts.target_length)
    rounded = blend_by_index(geometry, factor, fast, slow, True)
    if relative_difference(rounded, meant.inv_freq) > 0 or (traits.latent and meant.attention_factor != 1.0):
        return None
    flags = [
        "--rope-scaling yarn",
        f"--rope-scale {factor:.10g}",
        f"--yarn-orig-ctx {geometry.original_max_position_embeddings}",
        base,
    ]
    if (fast, slow) != (32.0, 1.0):
        flags += [f"--yarn-beta-fast {fast:g}", f"--yarn-beta-slow {slow:g}"]
    own = loader_attention_factor(factor, v5_block(facts).get("mscale_all_dim"), traits)
    if abs(meant.attention_factor - own) > 1e-9 and not traits.norm_after:
        flags.append(
            f"--override-kv {architecture(facts)}.rope.scaling.attn_factor=float:{meant.attention_factor / own:.10g}"
        )
    return flags
