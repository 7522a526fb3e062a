"""Closed formulas of a call's peak bytes, a file per backend, found by its name."""

FAMILIES = {
    "hf": "sdpa",
    "hf:sdpa": "sdpa",
    "hf:eager": "fused",
    "hf:flash_attention_2": "triton",
}
"""Backends without a formula of their own, and the one that allocates alike: the same kernel, or
the scores of all heads.
"""
