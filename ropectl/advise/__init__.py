"""Advice from configs alone: what a model computes, and which methods are worth testing for a length."""
