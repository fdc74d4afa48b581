"""``python -m ropectl`` and ``accelerate launch -m ropectl``."""

from ropectl.cli.app import main

main()
