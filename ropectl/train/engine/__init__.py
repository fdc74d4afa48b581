"""The machinery that computes a step: Accelerate, the wrapped model with its loss, the optimizer."""
