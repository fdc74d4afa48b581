"""Measures whether a model uses what is far back: prompts, one walk over what they share, and scores."""
