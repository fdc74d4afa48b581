"""Checks of the rotary code that a model really runs: each promise in numbers, with a control."""
