"""A live model: loading it, its rotary modules, its cache."""
