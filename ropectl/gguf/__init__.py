"""GGUF files, read from their header alone; what they say about rotation, and what a scaling changes in one."""
