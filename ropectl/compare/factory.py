"""The cells of a comparison, made from its plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ropectl.compare.cells import ComparisonCell
from ropectl.compare.passkey_prompts import PasskeyPrompts, PromptGroup
from ropectl.compare.plan import ComparedModel, Plan
from ropectl.data.tokens import DocumentSet
from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.cost import Advance, ForwardCost
from ropectl.evaluate.perplexity.find_protocol import find_protocol
from ropectl.evaluate.perplexity.protocol import PerplexityProtocol
from ropectl.evaluate.perplexity.runner import measure_perplexity
from ropectl.evaluate.perplexity.windows import PassOptions, PerplexityRequest, work_of
from ropectl.evaluate.retrieval.measure import answer_passkeys
from ropectl.evaluate.retrieval.passkey_cells import passkey_cells
from ropectl.evaluate.retrieval.prompts import tree_cost
from ropectl.evaluate.retrieval.row_groups import MAX_BATCH_TOKENS
from ropectl.evaluate.setup import Setup
from ropectl.hf.config.geometry import RopeDescription
from ropectl.hf.fingerprint import model_fingerprint
from ropectl.hf.model.loading import resolve_device
from ropectl.records import PasskeyCell, PerplexityPoint
from ropectl.rope.method import ScalingMethod
from ropectl.runs import package_versions

#: A record is used again only under the same versions of these.
DECIDING_PACKAGES = ("ropectl", "torch", "transformers", "tokenizers")

#: The protocols: whole beginnings of documents for what a reader sees, the same targets for the verdict.
TEXT_PROTOCOLS = ("prefix", "tail")


@dataclass(frozen=True)
class CellFactory:
    """Makes the cells of one model of a comparison.

    Attributes:
        config: The settings.
        rope: The geometry that the model was trained with, and its existing scaling.
        documents: The scored documents.
        passkeys: The passkey prompts, by seed.
        lengths: Context lengths [tokens].
        forward: The cost of a pass.
        common: Settings that every cell shares: model, dtype, device, versions.
    """

    config: CompareConfig
    rope: RopeDescription
    documents: DocumentSet
    passkeys: Sequence[PasskeyPrompts]
    lengths: list[int]
    forward: ForwardCost
    common: Mapping[str, Any]

    def cells(self, method: ScalingMethod) -> list[ComparisonCell]:
        """Returns the cells of one method."""
        of_seeds = self.passkeys if self.config.passkey else []
        groups = [(prompts, group) for prompts in of_seeds for group in prompts.groups(method)]
        texts = [self._text(method, find_protocol(name)) for name in TEXT_PROTOCOLS]
        return [*texts, *(self._passkey(method, prompts, group) for prompts, group in groups)]

    def _text(self, method: ScalingMethod, protocol: PerplexityProtocol) -> ComparisonCell:
        """Returns one cell for all lengths and documents of a protocol."""
        config = self.config
        capacity = self.rope.capacity(method)
        request = PerplexityRequest(method, self.rope.geometry, self.documents, self.lengths, capacity=capacity)
        request = protocol.completed(request)

        def measure(model: Any, advance: Advance, lengths: Sequence[int]) -> list[PerplexityPoint]:
            own = replace(options, progress=self.forward.reported(advance))
            return measure_perplexity(model, protocol, replace(request, lengths=list(lengths)), own)

        options = PassOptions(self.rope.layer_type, config.prefill_chunk, config.batch_size)
        work = work_of(protocol.passes(request), self.documents, self.forward, options)
        settings = {
            **self._named(method, protocol.name),
            "text": config.text,
            "lengths": self.lengths,
            "documents": [document.name for document in self.documents.documents],
            "tokens_sha256": self._tokens_sha256,
            **({"clusters": clusters} if (clusters := self.documents.shared_clusters) else {}),
            "batch_size": config.batch_size,
            **({"num_targets": request.num_targets} if request.num_targets is not None else {}),
        }
        longest, chunk = config.batch_size * work.longest, config.prefill_chunk
        memory = (longest, 0) if chunk is None else (min(config.batch_size * chunk, longest), longest)
        return ComparisonCell(
            str(method), protocol.name, self.lengths, settings, work.tokens, work.cost, *memory, measure
        )

    def _passkey(self, method: ScalingMethod, asked: PasskeyPrompts, group: PromptGroup) -> ComparisonCell:
        """Returns one cell for the prompts of a group under one seed."""
        config = self.config

        def measure(model: Any, advance: Advance, lengths: Sequence[int]) -> list[PasskeyCell]:
            prompts = [prompt for prompt in group.prompts if prompt.point.length in lengths]
            answered = answer_passkeys(
                model, method, self.rope.geometry, prompts, asked.builder,
                layers=self.rope.layer_type, prefill_chunk=config.prefill_chunk,
                progress=self.forward.reported(advance),
            )  # fmt: skip
            return passkey_cells(answered, asked.builder, self.rope.capacity(method))

        settings = {
            **self._named(method, "passkey"),
            "points": group.points,
            "trials": config.trials,
            "distractors": config.distractors,
            "prompts_sha256": group.prompts_sha256,
            "seed": asked.builder.seed,
        }
        lengths = sorted({length for length, _ in group.points})
        cost = tree_cost(group.size, group.passes, self.forward)
        memory = MAX_BATCH_TOKENS, max(MAX_BATCH_TOKENS, *lengths)
        return ComparisonCell(str(method), "passkey", lengths, settings, group.size.tokens, cost, *memory, measure)

    @cached_property
    def _tokens_sha256(self) -> str:
        return self.documents.fingerprint()

    def _named(self, method: ScalingMethod, kind: str) -> dict[str, Any]:
        return {**self.common, "kind": kind, "method": str(method)}


def model_cells(plan: Plan, model: ComparedModel) -> dict[ScalingMethod, list[ComparisonCell]]:
    """Returns the cells of one model, by method and in order."""
    source = model.setup.source
    factory = CellFactory(
        plan.config, source.rope, model.documents, PasskeyPrompts.of(model.setup, plan.lengths), plan.lengths,
        ForwardCost.of(source.config), _common_settings(model.setup),
    )  # fmt: skip
    return {method: factory.cells(method) for method in model.methods}


def _common_settings(setup: Setup) -> dict[str, Any]:
    config, source = setup.config, setup.source
    device = resolve_device(config.device)
    versions = {name: value for name, value in package_versions().items() if name in DECIDING_PACKAGES}
    return {
        "model": config.model,
        "model_fingerprint": model_fingerprint(source),
        "revision": config.revision,
        "geometry": source.rope.geometry.to_json(),
        "layers": source.rope.layer_type,
        "dtype": config.dtype,
        "device": device.type,
        "attention": config.attention,
        "trust_remote_code": config.trust_remote_code,
        "bos_token_id": setup.bos_token_id,
        "prefill_chunk": config.prefill_chunk,
        "versions": versions,
    }
