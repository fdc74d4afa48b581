"""How long work takes: what it costs, what was timed, and what follows for the rest."""
