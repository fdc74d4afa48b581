"""Measurements on a live model; every number is a sum over forward passes."""
