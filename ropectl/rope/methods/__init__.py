"""One published scaling method per file; every file here is found by the registry."""
