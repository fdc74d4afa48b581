"""From what was measured to what is said of it: intervals, pairs, verdicts and their sentences."""
