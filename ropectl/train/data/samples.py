"""Training samples by number: what is trained on at step n is a function of the settings and n alone.

So a resumed run continues at once with the next sample, wherever it stopped, and any number of ranks read the same
sequence. Samples come in cycles of ``CYCLE``, each with the same number of every kind at
shuffled places: shares are exact, and how many samples of a kind came before is arithmetic.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ropectl.data.token_store import TokenStore
from ropectl.errors import ConfigError
from ropectl.tasks.kinds.passkey import Passkey
from ropectl.tasks.prompt_builder import PromptBuilder
from ropectl.train.data.packing import BlockPlan
from ropectl.train.data.positions import POLICIES
from ropectl.train.data.sample_kinds import CYCLE, PASSKEY, SHORT, TEXT, cycle_kinds, kind_counts
from ropectl.train.settings import FinetuneSettings

#: The target where there is nothing to predict.
IGNORE = -100


@dataclass(frozen=True)
class TrainingSample:
    """A sequence to train on.

    Attributes:
        input_ids: Tokens, ``(T,)``.
        targets: The token that each position has to predict, shifted here and nowhere else, ``(T,)``.
            ``IGNORE`` where there is none: at the last position, and where the next token is BOS or
            belongs to another document.
        position_ids: Positions, ``(T,)``; None means 0 to T - 1.
        kind: ``text``, ``short`` or ``passkey``.
        skips: Whether positions jump inside the sequence, which then needs a mask of ones.
    """

    input_ids: list[int]
    targets: list[int]
    position_ids: list[int] | None
    kind: str
    skips: bool = False


class TrainingData:
    """The endless sequence of training samples.

    Text samples visit every block of the plan once an epoch, in another order each epoch. Short samples
    are windows of random blocks with positions from 0; they keep the model as it was on ordinary text.
    Passkey samples are retrieval prompts of ``seq_len`` tokens with their needle anywhere. Neither
    disturbs the order of the text.

    Args:
        store: The tokens.
        plan: Blocks of them.
        tokenizer: Makes passkey prompts.
        bos_token_id: Never a target; begins passkey prompts. None for none.
        settings: Packing (with ``isolated``, positions start again at every piece), position policy, shares of the
            kinds, and the seed that decides every order and every draw.
        seq_len: Tokens of a block.
        target_length: Context that training is for [tokens].
        short_length: Tokens of a short sample.

    Raises:
        ConfigError: If a setting is not possible, or not together with another.
    """

    def __init__(
        self,
        store: TokenStore,
        plan: BlockPlan,
        tokenizer: Any,
        bos_token_id: int | None,
        settings: FinetuneSettings,
        *,
        seq_len: int,
        target_length: int,
        short_length: int,
    ) -> None:
        self._policy, self._settings, self._seed = POLICIES[settings.positions], settings, settings.seed
        if self._policy.skips and settings.packing == "isolated":
            raise ConfigError(
                f"positions = {settings.positions} is not possible with packing = isolated: positions that skip need one "
                "sequence that sees all of itself.",
                "Type: --packing concat (or none)",
            )
        self._counts = kind_counts(settings.short_fraction, settings.passkey_fraction)
        self.store, self._plan, self._bos = store, plan, bos_token_id
        self._seq_len, self._target_length, self._short_length = seq_len, target_length, short_length
        self._prompts, self._task = PromptBuilder(tokenizer, bos_token_id, self._seed, for_training=True), Passkey()
        if self._counts[PASSKEY]:
            _check_passkeys(self._task, self._prompts, seq_len)

    @property
    def num_blocks(self) -> int:
        """The number of text blocks, which is that of text samples in an epoch."""
        return self._plan.num_blocks

    @property
    def fingerprint(self) -> str:
        """The hash of all tokens of the text."""
        return self.store.fingerprint

    def epoch(self, index: int) -> int:
        """Returns how often all text was seen before a sample."""
        return self._num_text_before(index) // self.num_blocks

    def kind(self, index: int) -> str:
        """Returns the kind of a sample."""
        cycle, place = divmod(index, CYCLE)
        return cycle_kinds(self._seed, cycle, tuple(self._counts.items()))[place]

    def block(self, index: int) -> int | None:
        """Returns the block that a text sample is; None for other kinds."""
        if self.kind(index) != TEXT:
            return None
        epoch, place = divmod(self._num_text_before(index), self.num_blocks)
        return int(_block_order(self._seed, epoch, self.num_blocks)[place])

    def sample(self, index: int) -> TrainingSample:
        """Returns a sample: a pure function of the settings and ``index``.

        Args:
            index: Sequences since training began, over all ranks and epochs.
        """
        rng = random.Random(f"ropectl-training:{self._seed}:{index}")
        block = self.block(index)
        if block is not None:
            return self._text(block, rng)
        return self._short(rng) if self.kind(index) == SHORT else self._passkey(index, rng)

    def _text(self, block: int, rng: random.Random) -> TrainingSample:
        pieces = [self.store.tokens(*piece) for piece in self._plan.pieces(block)]
        input_ids = [token for piece in pieces for token in piece]
        targets = [target for piece in pieces for target in self._targets(piece)]
        position_ids = self._positions(rng, len(input_ids))
        if self._settings.packing == "isolated" and len(pieces) > 1:
            position_ids = [position for piece in pieces for position in range(len(piece))]
        return TrainingSample(input_ids, targets, position_ids, TEXT, self._policy.skips)

    def _short(self, rng: random.Random) -> TrainingSample:
        """Returns a random window of a random block's longest piece, or the whole piece where that is shorter."""
        pieces = self._plan.pieces(rng.randrange(self.num_blocks))
        document, start, stop = max(pieces, key=lambda piece: piece.stop - piece.start)
        length = min(self._short_length, stop - start)
        start += rng.randint(0, stop - start - length)
        input_ids = self.store.tokens(document, start, start + length)
        return TrainingSample(input_ids, self._targets(input_ids), None, SHORT)

    def _passkey(self, index: int, rng: random.Random) -> TrainingSample:
        input_ids = self._task.build(self._prompts, self._seq_len, rng.random(), index).input_ids
        position_ids = self._positions(rng, len(input_ids))
        return TrainingSample(input_ids, self._targets(input_ids), position_ids, PASSKEY, self._policy.skips)

    def _targets(self, input_ids: list[int]) -> list[int]:
        """Returns what each token of one document's piece has to predict."""
        following = [IGNORE if token == self._bos else token for token in input_ids[1:]]
        return [*following, IGNORE]

    def _positions(self, rng: random.Random, length: int) -> list[int] | None:
        """Returns the positions of one sequence; None means 0, 1, 2, ..."""
        if not self._policy.skips:
            return None
        return self._policy.draw(rng, length, self._target_length, self._settings.pose_chunks)

    def _num_text_before(self, index: int) -> int:
        cycle, place = divmod(index, CYCLE)
        kinds = cycle_kinds(self._seed, cycle, tuple(self._counts.items()))
        return cycle * self._counts[TEXT] + kinds[:place].count(TEXT)


@lru_cache(maxsize=4)
def _block_order(seed: int, epoch: int, num_blocks: int) -> np.ndarray:
    """Returns the blocks in the order of an epoch, ``(num_blocks,)``."""
    entropy = [abs(seed), int(seed < 0), epoch]  # numpy takes no negative seeds
    return np.random.default_rng(entropy).permutation(num_blocks)


def _check_passkeys(task: Passkey, prompts: PromptBuilder, seq_len: int) -> None:
    """Refuses tokenizers without exact answer tokens, and sequences that are too short for a prompt."""
    if task.shape(prompts).budget:
        raise ConfigError(
            "This tokenizer merges the end of the question with the key: no exact answer tokens exist.",
            "Leave out --passkey-fraction.",
        )
    task.check_length(prompts, seq_len)
