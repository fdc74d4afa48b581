"""The training loop on Accelerate: data in, checkpoint out."""
