"""Perplexity over context lengths: what is scored in which windows, and what becomes of the losses."""
