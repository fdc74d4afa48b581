"""Checks of the model itself: before the first step, and by validations on the way."""
