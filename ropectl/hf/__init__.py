"""The seam to transformers: configs in, patched models out."""
