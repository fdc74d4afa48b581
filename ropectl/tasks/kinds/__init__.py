"""The retrieval tasks, a file for each or for a few of one kind, found by scanning."""
