"""From documents to training sequences."""
