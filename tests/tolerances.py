"""Every tolerance the tests use, with its reason."""

#: Float64 formulas against reference vectors that were computed in float32 (relative).
GOLDEN = 2e-6

#: Float64 formulas against the buffers of the installed transformers, float32 (relative).
PARITY = 2e-6

#: A pass over the longest context against a pass of each length, float32 (relative perplexity).
ONE_PASS = 1e-5

#: A uniform distribution: ln V is rounded to float32 once per token (relative perplexity).
UNIFORM = 1e-6

#: Chunked against whole forward passes, float32 (absolute, nats a token).
CHUNKED = 2e-5

#: Closed forms in float64 (relative).
EXACT = 1e-12

#: Logits of a written checkpoint against the formula's frequencies in the buffers (relative to the largest
#: logit): float32 buffers that differ in the last bit, at positions up to 512.
UNIVERSAL_LOGITS = {"float32": 1e-4, "bfloat16": 3e-2}

#: Float64 formulas against a runtime's float32 table of cos and sin, from which a frequency is taken back (relative).
RUNTIME_TABLE = 2e-6
#: Numbers that a GGUF file stores in float32, against the float64 formula (relative).
GGUF_FLOAT32 = 1e-6

#: Another runtime on the same float32 weights (mean absolute difference, nats a token).
RUNTIME = 1e-3

#: A sequence shared by several processes against one process on all of it: loss (relative) and the gradient of
#: every parameter (relative to its largest value), float32 summed in another order.
SHARED_SEQUENCE = 1e-5
#: The same where the shared sequence is computed in bfloat16 and the other in float32.
SHARED_SEQUENCE_BFLOAT16 = 5e-2

#: Loss and gradients of chunks against whole logits, float32 (relative; for gradients also to their largest entry).
CHUNKED_LOSS = 1e-5

#: Estimated against measured bytes that a forward pass keeps (relative): padding, and a few vectors that are not counted.
KEPT_BYTES = 0.03

#: The answer's log-probability, prompt by prompt against a walk with a cache in other pieces, float32 (absolute, nats).
WALK = 2e-4
