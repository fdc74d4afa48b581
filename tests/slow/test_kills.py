"""A comparison killed at thirty random moments and finished: nothing is lost, nothing differs."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compare.test_ranks import killed_and_finished

pytestmark = pytest.mark.slow


def test_thirty_kills(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    killed_and_finished(checkpoint(), tmp_path, 30, random.Random(1))
