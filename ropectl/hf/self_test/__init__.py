"""Checks of the rotary code that a model really runs: promises in numbers, and a control for each."""
