"""Views over records: they never import torch and can be rendered again at any time."""
