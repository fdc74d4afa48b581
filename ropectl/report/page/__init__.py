"""The page: one HTML file that shows records, by itself, wherever it is opened."""
