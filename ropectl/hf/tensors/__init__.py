"""What the headers of weight files say, compared with what the config says; no weight is read."""
