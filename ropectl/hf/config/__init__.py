"""A model's config: what it says about rotation, and how a scaling is written into it."""
