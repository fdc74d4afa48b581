"""The command line: options -> config -> one call -> output."""
