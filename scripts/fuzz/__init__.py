"""Bad invocations of every command, and the judge of what became of them; see ``scripts/fuzz_cli.py``."""
