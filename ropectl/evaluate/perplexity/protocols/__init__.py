"""The protocols of perplexity, one file each, found by scanning."""
