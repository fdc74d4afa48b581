"""Comparison of methods: a grid of cells, measured once each."""
