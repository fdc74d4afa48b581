"""``verify-runtime``: which reading of a checkpoint another program computes."""
