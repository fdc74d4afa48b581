"""What the rotary classes and the model classes of vLLM and sglang make of a config, as tables; both grew from one code."""
