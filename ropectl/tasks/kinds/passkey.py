"""The passkey task of ``eval-passkey``, as one task among others."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from ropectl.data.passkey import PasskeyPromptBuilder
from ropectl.data.passkey_wording import KEY_RANGE, MAX_DISTRACTORS
from ropectl.data.trials import Trial
from ropectl.rope.method import Reference
from ropectl.tasks.kit import PromptKit
from ropectl.tasks.task import EXACT, RetrievalTask


class Passkey(RetrievalTask):
    """A number is hidden in filler sentences and asked for at the end; the prompts are those of eval-passkey."""

    name: ClassVar[str] = "passkey"
    title: ClassVar[str] = "Passkey"
    reference: ClassVar = Reference("Landmark Attention", "2305.16300")
    measures: ClassVar[str] = "whether a distance is used at all: the easiest retrieval there is"
    metric: ClassVar[str] = EXACT
    has_depths: ClassVar[bool] = True

    distractors: int = Field(0, ge=0, le=MAX_DISTRACTORS, description="other labelled keys in the prompt")

    @property
    def chance(self) -> float:
        """One of all keys, or one of those that are planted."""
        return 1 / (self.distractors + 1) if self.distractors else 1 / (KEY_RANGE[1] - KEY_RANGE[0] + 1)

    def min_length(self, kit: PromptKit) -> int:
        """Returns the shortest prompt that can be built, answer included [tokens]."""
        return self._builder(kit).min_length

    def position(self, kit: PromptKit, length: int, depth: float) -> int:
        """Returns where the asked key's sentence begins."""
        return self._builder(kit).needle_position(length, depth)

    def build(self, kit: PromptKit, length: int, depth: float | None, number: int) -> Trial:
        """Returns one trial, which is that of ``eval-passkey`` at the same seed."""
        self.check_length(kit, length)
        assert depth is not None
        return self._builder(kit).build(length, depth, number).trial

    def _builder(self, kit: PromptKit) -> PasskeyPromptBuilder:
        def make() -> PasskeyPromptBuilder:
            bos = kit.bos_token_id if kit.chat is None else None
            return PasskeyPromptBuilder.for_evaluation(
                kit.tokenizer, bos, kit.seed, self.distractors, chat=kit.chat is not None
            )

        return kit.once(("passkey", self.distractors), make)
