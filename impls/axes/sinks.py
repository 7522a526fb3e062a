"""A learned score of each head beside those of the keys, without a value, as gpt-oss has it.

The reference has its column in the softmax; shared/inputs.py draws numbers that matter.
"""

from .axis import Axis

SINKS = Axis(
    "Whether each head has a learned score, its sink, beside those of the keys: softmax runs"
    " over both, and the sink has no value (gpt-oss).",
    option="Give each head a sink: one more score in its softmax (gpt-oss).",
    scenario_wide=True,
    part=lambda p: "sinks" if p.sinks else "",
    text=lambda value: "sinks" if value else "",
    in_rows="whether each head had a sink, a learned score without a value, in its softmax",
    opt_in=True,
    tensors=lambda p: {"sinks": (p.heads,)},
    query_exps=1,
)
