"""How tables and conventions are named on the command line; imports nothing heavy."""

from typing import Literal

PREFIX = "published:"
Convention = Literal["2", "2.5"]
"""FLOPs of the backward pass over those of the forward pass, where d_k = d_v.

2: the products of dV, dP, dQ and dK, as costs.work_flops counts. 2.5: also that of the scores,
which a fused kernel computes again, as Dao 2023 (FlashAttention-2, section 4.1) and cudnn-frontend
count.
"""
