"""Running servers: how each is recognised, and how it is asked for log-probabilities of a given text."""
