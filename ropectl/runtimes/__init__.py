"""Predicts what each runtime will really compute from a checkpoint's config.json, and how to start it. Arithmetic only."""
