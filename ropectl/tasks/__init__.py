"""Retrieval tasks: what is hidden in a prompt, what is asked, and what counts as the answer."""
