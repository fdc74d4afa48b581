"""Kinds of text sources, one file each; every module here is scanned."""
