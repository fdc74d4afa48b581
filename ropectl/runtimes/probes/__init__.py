"""Scripts that a runtime's own Python runs: token ids in, log-probabilities out. They import nothing of ropectl."""
