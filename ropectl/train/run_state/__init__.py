"""The files of a run, from which the same command goes on where it ended: settings, states, metrics, best weights."""
