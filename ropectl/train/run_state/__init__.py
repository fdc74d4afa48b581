"""What a run keeps on disk, so that the same command goes on where it ended: settings, states, metrics, best weights."""
