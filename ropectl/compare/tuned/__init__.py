"""Equal training of every method before it is measured again."""
