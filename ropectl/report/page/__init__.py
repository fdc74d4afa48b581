"""The page: one self-contained HTML file that shows records."""
