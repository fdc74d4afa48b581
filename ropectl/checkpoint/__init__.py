"""Writing patched checkpoints: plan, copy, write aside, prove, rename."""
