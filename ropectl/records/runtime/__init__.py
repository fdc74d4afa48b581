"""Records of what other programs make of a checkpoint."""
