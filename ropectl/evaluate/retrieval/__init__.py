"""Measures whether a model uses what stands far back: prompts, one walk over what they share, and scores."""
