"""One retrieval task per file; every file here is found by scanning."""
