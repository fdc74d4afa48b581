"""Thresholds from which on a measured number can be relied on."""

from __future__ import annotations

#: Verdicts on fewer documents are marked.
FEW_DOCUMENTS = 8

#: Fewer passkey trials at a length give no verdict.
MIN_TRIALS = 20

#: Relative changes of perplexity below this are none: passes differ by rounding.
NO_CHANGE = 5e-4
