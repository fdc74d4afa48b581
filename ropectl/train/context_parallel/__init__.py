"""Sequences that several ranks share, for activations that do not fit one device."""
