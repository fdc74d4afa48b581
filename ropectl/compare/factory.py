"""Makes the cells of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ropectl.compare.cells import Cell, Measure
from ropectl.compare.plan import Plan, Subject
from ropectl.data.passkey import PasskeyPromptBuilder
from ropectl.data.tokens import DocumentSet
from ropectl.evaluate.config import CompareConfig
from ropectl.evaluate.cost import Cost, ForwardCost
from ropectl.evaluate.passkey import measure_trees
from ropectl.evaluate.passkey_plan import PasskeyTree, Point, count_tokens, plan_passkey, walks
from ropectl.evaluate.perplexity.find_protocol import find_protocol
from ropectl.evaluate.perplexity.protocol import PerplexityProtocol
from ropectl.evaluate.perplexity.runner import measure_perplexity
from ropectl.evaluate.perplexity.windows import PassOptions, PerplexityRequest
from ropectl.evaluate.setup import Setup
from ropectl.evaluate.walk import MAX_BATCH_TOKENS
from ropectl.hf.config.fingerprint import model_fingerprint
from ropectl.hf.config.geometry import RopeDescription
from ropectl.hf.model.loading import resolve_device
from ropectl.records import PasskeyCell, PerplexityPoint
from ropectl.reporter import Progress
from ropectl.rope.method import ScalingMethod
from ropectl.runs import package_versions

#: A record is used again only under the same versions of these.
DECIDING_PACKAGES = ("ropectl", "torch", "transformers", "tokenizers")

#: How text is measured: whole beginnings for what a reader sees, and the same targets for the verdict.
TEXT_PROTOCOLS = ("prefix", "tail")

#: A walk of more tokens is measured needle position by needle position, so that an interruption loses less of it.
MAX_WALK_TOKENS = 2**20

#: Tokens of an answer, for what it costs to read them: a nominal number that decides no result.
NOMINAL_ANSWER = 5


@dataclass(frozen=True)
class _Walk:
    """Passkey prompts that are walked together, whatever the method.

    Attributes:
        trees: Needle positions.
        points: (length, depth) of their prompts.
        tokens: Tokens computed.
        prompts_sha256: A hash over one prompt a point: other wording or another tokenizer is another record.
    """

    trees: Sequence[PasskeyTree]
    points: list[Point]
    tokens: int
    prompts_sha256: str

    @classmethod
    def of(cls, builder: PasskeyPromptBuilder, trees: Sequence[PasskeyTree], tokens: int) -> _Walk:
        points = [point for tree in trees for point in tree.points]
        return cls(trees, points, tokens, builder.fingerprint_points(points, 1))


@dataclass(frozen=True)
class CellFactory:
    """Makes the cells of one model of a comparison.

    Attributes:
        config: What was asked for.
        rope: What the model was trained with, and how it is scaled already.
        documents: The scored documents.
        builder: Builds the passkey prompts.
        lengths: Context lengths [tokens].
        forward: What a pass costs.
        common: Settings that every cell shares: model, dtype, device, versions.
    """

    config: CompareConfig
    rope: RopeDescription
    documents: DocumentSet
    builder: PasskeyPromptBuilder
    lengths: list[int]
    forward: ForwardCost
    common: Mapping[str, Any]

    def cells(self, method: ScalingMethod) -> list[Cell]:
        """Returns the cells of one method."""
        passkey = self._passkeys(method) if self.config.passkey else []
        return [*(self._text(method, find_protocol(name)) for name in TEXT_PROTOCOLS), *passkey]

    def _text(self, method: ScalingMethod, protocol: PerplexityProtocol) -> Cell:
        """One cell for all lengths and documents of a protocol."""
        config = self.config
        request = protocol.completed(
            PerplexityRequest(
                method, self.rope.geometry, self.documents, self.lengths, capacity=self.rope.capacity(method)
            )
        )

        def measure(model: Any, progress: Progress, lengths: Sequence[int]) -> list[PerplexityPoint]:
            options = PassOptions(self.rope.layer_type, config.prefill_chunk, config.batch_size, progress)
            return measure_perplexity(model, protocol, replace(request, lengths=list(lengths)), options)

        windows = [window for one in protocol.passes(request) for window in one.windows()]
        sizes = [window.num_tokens(self.documents) for window in windows]
        cost = sum(
            (self.forward.window(n, window.num_scored) for n, window in zip(sizes, windows, strict=True)), Cost()
        )
        settings = {
            "text": config.text,
            "lengths": self.lengths,
            "documents": [document.name for document in self.documents.documents],
            "tokens_sha256": self._tokens_sha256,
            "batch_size": config.batch_size,
            **({"num_targets": request.num_targets} if request.num_targets is not None else {}),
        }
        longest, chunk = config.batch_size * max(sizes), config.prefill_chunk
        memory = (longest, 0) if chunk is None else (min(config.batch_size * chunk, longest), longest)
        return self._cell(method, protocol.name, self.lengths, settings, sum(sizes), cost, memory, measure)

    def _passkeys(self, method: ScalingMethod) -> list[Cell]:
        follows = method.depends_on_seq_len  # all that a plan knows of a method
        if follows not in self._walks:
            self._walks[follows] = self._planned_walks(method)
        return [self._passkey(method, walk) for walk in self._walks[follows]]

    @cached_property
    def _walks(self) -> dict[bool, list[_Walk]]:
        """What was planned already: prompts are built and counted once, not for every method."""
        return {}

    def _planned_walks(self, method: ScalingMethod) -> list[_Walk]:
        """One for all prompts that share their beginnings; very long ones in pieces."""
        depths, trials = self.config.depth_values(), self.config.trials
        planned = []
        for walk in walks(plan_passkey(method, self.builder, self.lengths, depths)):
            tokens = count_tokens(self.builder, walk, trials)
            if tokens <= MAX_WALK_TOKENS:
                planned.append(_Walk.of(self.builder, walk, tokens))
            else:
                pieces = ((tree, count_tokens(self.builder, [tree], trials)) for tree in walk)
                planned.extend(_Walk.of(self.builder, [tree], count) for tree, count in pieces)
        return planned

    def _passkey(self, method: ScalingMethod, walk: _Walk) -> Cell:
        config = self.config

        def measure(model: Any, progress: Progress, lengths: Sequence[int]) -> list[PasskeyCell]:
            chosen = [replace(t, points=tuple(point for point in t.points if point[0] in lengths)) for t in walk.trees]
            return measure_trees(
                model, method, self.rope.geometry, self.builder, [tree for tree in chosen if tree.points],
                config.trials,
                layers=self.rope.layer_type, capacity=self.rope.capacity(method),
                prefill_chunk=config.prefill_chunk, progress=progress,
            )  # fmt: skip

        settings = {
            "points": walk.points,
            "trials": config.trials,
            "distractors": config.distractors,
            "prompts_sha256": walk.prompts_sha256,
            "seed": config.seed,
        }
        lengths = sorted({length for length, _ in walk.points})
        trunks = walk.tokens / max(
            lengths
        )  # as many of the longest as there are tokens: the most that attention can cost
        scored = NOMINAL_ANSWER * config.trials * len(walk.points)
        cost = self.forward.tree(walk.tokens, max(lengths), trunks, scored)
        memory = MAX_BATCH_TOKENS, max(MAX_BATCH_TOKENS, *lengths)
        return self._cell(method, "passkey", lengths, settings, walk.tokens, cost, memory, measure)

    @cached_property
    def _tokens_sha256(self) -> str:
        return self.documents.fingerprint()

    def _cell(
        self,
        method: ScalingMethod,
        kind: str,
        lengths: Sequence[int],
        settings: Mapping[str, Any],
        tokens: int,
        cost: Cost,
        memory: tuple[int, int],
        measure: Measure,
    ) -> Cell:
        full = {**self.common, "kind": kind, "method": str(method), **settings}
        return Cell(str(method), kind, lengths, full, tokens, cost, *memory, measure)


def subject_cells(plan: Plan, subject: Subject) -> dict[ScalingMethod, list[Cell]]:
    """Returns the cells of one model, by method and in order."""
    source = subject.setup.source
    factory = CellFactory(
        plan.config, source.rope, subject.documents, subject.builder, plan.lengths,
        ForwardCost.of(source.config), _common_settings(subject.setup),
    )  # fmt: skip
    return {method: factory.cells(method) for method in subject.methods}


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
