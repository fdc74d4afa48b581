"""Live models: loading them, their rotary modules, their cache."""
