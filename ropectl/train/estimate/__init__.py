"""Estimates what a run will need, before any weight loads: parameters, arithmetic, memory and time."""
