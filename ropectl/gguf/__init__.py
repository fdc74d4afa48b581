"""GGUF files: what their headers say about rotation, and what a scaling changes in them."""
