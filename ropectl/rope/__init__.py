"""The mathematics of rotary position embeddings and their scaling: pure functions of frequencies, no torch."""
